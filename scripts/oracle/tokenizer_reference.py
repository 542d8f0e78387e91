"""Hugging Face tokenizers as the reference for core/tokenizer."""
import json

from tokenizers import Tokenizer

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")


class Reference:
    """A tokenizer.json read with the pattern the model was trained with, whichever the file holds."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            spec = json.load(f)
        spec["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": PATTERN}
        self.added = Tokenizer.from_str(json.dumps(spec))
        split = dict(spec, pre_tokenizer=spec["pre_tokenizer"]["pretokenizers"][0])
        self.split = Tokenizer.from_str(json.dumps(split)).pre_tokenizer
        self.plain = Tokenizer.from_str(json.dumps(dict(spec, added_tokens=[])))

    def normal(self, text):
        return self.added.normalizer.normalize_str(text)

    def pieces(self, text):
        """The text normalised and split."""
        return [piece for piece, _ in self.split.pre_tokenize_str(self.normal(text))]

    def encode(self, text):
        """Ids of text from people, in which added tokens are text."""
        return self.plain.encode(text, add_special_tokens=False).ids

    def encode_with_added(self, text):
        """Ids of a prompt, in which added tokens are found."""
        return self.added.encode(text, add_special_tokens=False).ids

    def decode(self, ids, skip_special):
        return self.added.decode(ids, skip_special_tokens=skip_special)
