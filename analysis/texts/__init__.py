"""What is read: examples and tasks, parses, treebanks, coreference chains, passages, corpora."""

from analysis.lazy import lazy_names

HOMES = {
    "load_passages": "passages",
    "parse": "syntax",
    "parser_name": "pipelines",
    "load_examples": "glue",
    "shared_examples": "examples",
    "sample": "examples",
    "tags": "syntax",
    "TASKS": "tasks",
    "conllu_files": "treebank",
    "read_trees": "treebank",
    "treebank_examples": "treebank",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
