"""Tables of people's judgements: who never chooses."""

from tests.helpers.regret import real
from uetrust.core.roles import role_of
from uetrust.papers.people import tables as people_tables
from uetrust.papers.people.translations import judged_translations


@real
def test_baselines_are_never_chosen_and_single_persons_never_choose():
    judged = judged_translations("ru-en", "test20", without=("chrf", "bleu", "ter", "rouge_l", "meteor"))
    assert {name for name in judged.uncertainty if role_of(name) == "baseline"} >= {
        "token_count",
        "source_length",
        "chance",
    }
    assert {role_of(name) for name in people_tables.methods_to_choose(judged)} == {"method"}
    assert list(people_tables.metrics_to_choose_by(judged)) == ["da_z", "hter", "embedding_spearman"]
