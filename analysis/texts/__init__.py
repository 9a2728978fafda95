"""The texts of the study: examples and tasks, parses, treebanks, coreference chains, passages, corpora."""

from analysis.texts.examples import sample, shared_examples
from analysis.texts.glue import load_examples
from analysis.texts.passages import load_passages
from analysis.texts.pipelines import parser_name
from analysis.texts.syntax import parse, tags
from analysis.texts.tasks import TASKS
from analysis.texts.treebank import conllu_files, read_trees
