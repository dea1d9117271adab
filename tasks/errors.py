"""Every error a user can cause, as one tree.

PipelineError
├── ParameterError     a parameter is unknown, mistyped or impossible beside another
├── InputError         a document, dataset or folder that a stage needs cannot be used
├── CheckpointError    a model folder is missing, incomplete or not what it claims to be
├── StageBusyError     another process holds the stage's lock
├── BudgetError        what may be spent on a model is spent
├── UntrustedJudgeError  a judge is out of reach, or does not tell right answers from wrong ones
├── SandboxError       programs cannot be run safely here (tasks/rewards/code/sandbox.py)
├── DivergedError      entropy or gradient of a training step is not finite
└── UnsafeQueryError   a SQL statement is not a plain SELECT over the loaded tables

A message names the value, the rule it breaks and the remedy. Commands print it as one line and exit with 2.
"""


class PipelineError(Exception):
    """Base of all errors that a command reports in one line instead of a traceback."""


class ParameterError(PipelineError):
    """A parameter is unknown, of the wrong type, or impossible together with another."""


class InputError(PipelineError):
    """A document, dataset or folder that a stage needs is missing, unreadable, empty or too small."""


class CheckpointError(PipelineError):
    """A model folder is missing, incomplete or inconsistent."""


class StageBusyError(PipelineError):
    """Another live process is running the same stage."""


class UnsafeQueryError(PipelineError):
    """A SQL statement is not a single SELECT over the loaded tables."""


class BudgetError(PipelineError):
    """What may be spent on a model does not suffice for the next request."""


class UntrustedJudgeError(PipelineError):
    """A judge is out of reach, or does not tell right answers from wrong ones."""


class DivergedError(PipelineError):
    """A training step's entropy or gradient is not finite; the weights stay as they were."""
