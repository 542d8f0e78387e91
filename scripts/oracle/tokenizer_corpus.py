"""Seeded texts for comparing tokenizers: what goes wrong in a pre-tokenizer, a normaliser or a merge loop.

The same seed gives the same texts on every Python 3.8 or later: only random.random() is drawn from, and no Unicode
table of Python's is asked.
"""
import random

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and doesn't look back.",
    "I'LL say it's what they'Re after; we'd've known, y'all'd think. 'Tis she'ſ, they'ſ, IT'S, 'Sblood, o'clock 'em",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. ÄÖÜ ẞß ﬁ ﬀ",
    "Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis. L'été",
    "Широкая электрификация южных губерний даст мощный толчок подъёму сельского хозяйства.",
    "Ταχίστη αλώπηξ βαφής ψημένη γη, δρασκελίζει υπέρ νωθρού κυνός. ᾳ ᾼ Ὦ",
    "我能吞下玻璃而不伤身体。今天天气很好，我们去公园散步吧！“引号”、《书名》——省略……",
    "いろはにほへと ちりぬるを。ガギグゲゴ、ﾊﾝｶｸｶﾅ。東京都渋谷区１２３４",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले। क़ख़ १२३",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر وَمُغَلَّف ١٢٣",
    "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה שָׁלוֹם",
    "Tiếng Việt: Con sói và con cáo đang ngồi ở bờ sông, nhìn thẳng vào mặt nhau.",
    "ཨོཾ་མ་ཎི་པདྨེ་ཧཱུྃ། ꯃꯅꯤꯄꯨꯔ ᠮᠣᠩᠭᠣᠯ ဗမာစာ ಕನ್ನಡ മലയാളം தமிழ் తెలుగు",
    "def f(x: int = 0) -> str:\n    return f'{x:>10}'  # comment\n\n\nclass A(B):\n\tpass\n",
    "for (int i=0;i<n;++i){a[i]+=b[i]*c[i];}\r\n\r\n// done\r\n#include <stdio.h>\r\n",
    "SELECT * FROM t WHERE a <> 'it''s' AND b >= 1e-9; -- ok\n<div class=\"x\">&nbsp;</div>\n",
    "{\"key\": [1, 2.50, -3e+10, true, null], \"path\": \"C:\\\\dir\\\\file.txt\", \"u\": \"\\u00e9\"}",
    "https://example.org/a/b?c=d&e=%20f#g user@example.com $100.00 50% #tag @name ^_^ :-) ... --- *** ===",
    "👍🏽 👩‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ 1️⃣ #️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ☺︎ 😀😃😄 🫠 🧑🏿‍🚀",
    "𝕳𝖊𝖑𝖑𝖔 𝟙𝟚𝟛 𐍈𐌰𐌽 𓀀𓁐 𠜎𠜱 𝄞 Ⅻ ½ ² ₃ ① ㊿ 〇 〡",
]
ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>",
         "<|fim_prefix|>", "<tts_text_bos>", "<tts_text_bos_single>", "<|audio_pad|>"]
SPACES = " \t\n\r\v\f\x85\xa0\u1680\u2000\u2003\u2028\u2029\u202f\u205f\u3000" + " \n\r" * 6
NO_SPACES = "\u180e\u200b\u200c\u200d\u2060\ufeff\x1c\x1d\x1e\x1f\x00\x7f\xad"
MARKS = "\u0300\u0301\u0302\u0303\u0308\u030a\u0323\u0327\u0328\u0331\u0338\u0345\u034f\u0483\u0489\u05b0\u05b9\u064b" \
        "\u0650\u093c\u094d\u09be\u0e38\u0e48\u0f71\u0f72\u20dd\u20e3\u3099\u309a\ufe0f\ufe20\u07fd\u0898\u1dfa\u1abf" \
        "\U0001d165\U0001d16d\U000e0101\U00016ff0\U00010eab\U00011930\U00011f41"
COMPOSED = "éÅÅÖöǖṩậệΏΐיִשׁ갛각한ガぱ①ﬁ²ΩK豈\u0344\u0340\u0374\u0958\u0f73\u0f81\u2adc\U0001d15e\U0002f800"
HANGUL = "".join(map(chr, [0x1100, 0x1105, 0x1112, 0x1161, 0x1165, 0x1175, 0x11a8, 0x11af, 0x11c2, 0xac00, 0xac1c]))
LETTERS = "abcdeilmnorstvzABDELMRSTVZſKßŉǅʰªºµ中国日本あア가अกאعяЯωΩ𝒜𐐀" + "stmdrevl'" * 4
NUMBERS = "0123456789²¼½Ⅷ①٣३๓〇㊿𝟘𐄇¹"
SYMBOLS = "'\"!#$%&()*+,-./:;<=>?@[\\]^_`{|}~¡§¶•…—“”’、。！€™→∑█☃😀👍🏽🇩🇪\ue000\ufffd\U000f0000"
POOLS = [SPACES, SPACES, NO_SPACES, MARKS, COMPOSED, HANGUL, LETTERS, LETTERS, NUMBERS, SYMBOLS]


class Source:
    """Draws from a seeded generator by random() alone, whose sequence Python promises to keep."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def below(self, n):
        return int(self.rng.random() * n)

    def pick(self, items):
        return items[self.below(len(items))]

    def mixed(self, length):
        """Short runs from a few pools, so that neighbours of every two kinds occur."""
        out = []
        while len(out) < length:
            pool = self.pick(POOLS)
            out.extend(self.pick(pool) for _ in range(1 + self.below(4)))
        return "".join(out)

    def anything(self, length):
        """Any code points but surrogates, those of the first planes more often."""
        tops = [0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000]
        points = (self.below(self.pick(tops)) for _ in range(length))
        return "".join(chr(c) for c in points if not 0xD800 <= c < 0xE000)

    def broken(self, text):
        """A text with characters put in, left out and changed in case."""
        out = []
        for c in text:
            chance = self.below(40)
            if chance == 0:
                continue
            out.append(c.upper() if chance == 1 and c.isascii() else c)
            if chance == 2:
                out.append(self.pick(self.pick(POOLS)))
        return "".join(out)


def contractions():
    """Every contraction, and what looks like one, in all cases and between neighbours."""
    tails = ["s", "t", "re", "ve", "m", "ll", "d", "ſ", "ſs", "x", "l", "r", "v", "ē", "K", "ß", "ﬅ", "ﬆ", "", "ls", "led"]
    texts = []
    for mark in "'’ʼ＇`":
        for tail in tails:
            cased = sorted({tail, tail.upper(), tail.capitalize(), tail[:1] + tail[1:].upper()})
            texts.append(" ".join(f"it{mark}{c} {mark}{c}a 1{mark}{c}2 ,{mark}{c}, \n{mark}{c}\n{mark}{mark}{c}" for c in cased))
    return texts


def runs(length):
    """Long runs of one thing: what makes a careless tokenizer quadratic."""
    units = ["a", " ", "\n", "\r\n", " \n", "\t", "0", "!", "'", "'s", "é", "e\u0301", "\u0301", "\u0301\u0323", "中", "👍🏽",
             "\u1161", "가", "\u200b", "\u3000", "ab ", "<", "<|im_end|", "=", "ſ", "\u07fd\u0301", "\U0001d165"]
    return [pre + unit * (length // len(unit)) + post for unit in units for pre, post in [("", ""), ("x", "x")]]


def texts(seed, rounds, run):
    """The corpus: rounds scales the random parts, run is the length of the long runs in characters."""
    s = Source(seed)
    out = ["", *SENTENCES, *contractions(), *runs(run), "\n".join(SENTENCES)]
    for _ in range(rounds):
        out.append(s.mixed(1 + s.below(60)))
        out.append(s.anything(1 + s.below(12)))
        out.append(s.broken(s.pick(SENTENCES)))
        parts = [s.pick(ADDED) if s.below(2) else s.pick([s.mixed(3), s.pick(ADDED)[:-1], s.pick(ADDED)[1:], " ", ""])
                 for _ in range(1 + s.below(8))]
        out.append("".join(parts))
    return out


def points(first, last):
    """Code points first to last in the surroundings in which their class, case folding and combining show."""
    out = []
    for c in map(chr, (c for c in range(first, last) if not 0xD800 <= c < 0xE000)):
        out.append(f"a{c}b 1{c}2 !{c}{c} {c}\n {c} '{c}e'r{c}'l{c}'v{c} q\u0345{c}\u0334a{c}\u0301 ")
    return "".join(out)
