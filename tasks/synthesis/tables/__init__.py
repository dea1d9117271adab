"""Corpus-level questions with executed answers: see asking.py."""
