"""Questions from the knowledge graph of a split: over several facts, and multiple choice over one."""

from dataclasses import replace

from tasks.corpus.library import Library
from tasks.records import Domain, Split
from tasks.synthesis.asking import Asker
from tasks.synthesis.facts import choice_riddles
from tasks.synthesis.language import Language
from tasks.synthesis.leaks import LeakGuard
from tasks.synthesis.makers import GraphRules
from tasks.synthesis.multi_hop import ask_multi_hop
from tasks.synthesis.questions import Harvest, Source
from tasks.synthesis.reading import read_graph


def knowledge_graph_questions(
    library: Library, split: Split, wanted: int, rules: GraphRules, language: Language
) -> dict[Domain, Harvest]:
    """Up to `wanted` questions of each domain; what is missing stands in the rejections and the offer of a harvest.

    No question of either domain gives the answer of another away.
    """
    graph, unread = read_graph(library, split, language, rules.min_documents)
    guard = LeakGuard()
    source = Source(Domain.MULTI_HOP, "knowledge_graph", split, rules.seed)
    hops = Asker(source, library, language, guard)
    hops.harvest.rejections.update(unread)
    ask_multi_hop(graph, language, hops, wanted, rules)
    choice = Asker(replace(source, domain=Domain.MULTIPLE_CHOICE), library, language, guard)
    choice.ask(choice_riddles(graph, f"{rules.seed} {split}", choice.harvest.rejections), wanted)
    return {Domain.MULTI_HOP: hops.harvest, Domain.MULTIPLE_CHOICE: choice.harvest}
