"""Normalizes the words of team names: other scripts, transliterations, names of cities, club types, sponsors. Pure.

Only spellings that never tell two teams apart are unified. What remains different is for `comparison` to judge.
"""

import re
import unicodedata
from functools import lru_cache

# Words of club names that some sources leave out. Those that name the type of a club tell two clubs of one name apart
# if both have one: EC Vitória and Vitória SC. Those of the first line are one type.
_CLUB_TYPES = """
fc cf afc fk cfc kf pfc sfc
aa acf hsc sl tc osc ccc cs csd msk ac ad aj as bc bk bsc ca cc cd cfr cr ec ff fsv gks gnk hnk if ifk ik il
jk kaa krc ks kv losc mks nk ogc rc rcd rsc sc sd se sk spvgg ss ssc ssv sv tsg tsv uc ud us vfb vfl
"""
_OTHERS = """
al and calcio club clube cricket da de del do e esporte football fotball fotboll futbol futebol men mens of
regatas sco sport stade team the y
"""
_SPONSORS = """
arabam pari yapi atakas bayer bitexen cashpoint caykur corendon emirates etihad fraport hero medipol mondihome
philips puntigamer rams rasenballsport rb redbull siltas swarovski tav toyota tumosan vivo yukatel
"""
_ONE_TYPE = _CLUB_TYPES.strip().splitlines()[0].split()
_ROYAL = {"kaa": "aa", "krc": "rc", "rsc": "sc", "rcd": "cd"}
TYPES = {word: _ONE_TYPE[0] if word in _ONE_TYPE else _ROYAL.get(word, word) for word in _CLUB_TYPES.split()}
_OPTIONAL = frozenset(TYPES) | frozenset(_OTHERS.split()) | frozenset(_SPONSORS.split())
_SPONSORS_OF_TWO_WORDS = re.compile(r"\bred bull\b")
_FOUNDED = re.compile(r"^(?:1|0\d|\d\d|1[89]\d\d|20\d\d)$")  # 1. FC Köln, Mainz 05, Parma Calcio 1913

# Names of one city or club in several languages, and usual abbreviations: the first word stands for all of its group.
_GROUPS = """
antwerp antwerpen, athens athina athinai athen, bangalore bengaluru, basel basle bale, beijing peking,
belgrade beograd, berne bern, bruges brugge, brussels bruxelles brussel, bucharest bucuresti,
chornomorets chernomorets, cologne koln koeln keulen, copenhagen kobenhavn, corunna coruna, cracow krakow,
dnipro dnepr dnjepr, donetsk donezk, dynamo dinamo dynama dinama, florence firenze, geneva geneve genf,
ghent gent gand, gothenburg goteborg, hanover hannover, istanbul stamboul, kharkiv kharkov charkiv charkow,
kiev kyiv kyjiv kiew, kolkata calcutta, lisbon lisboa, lokomotiv lokomotyv locomotiv, luhansk lugansk,
lviv lvov lwow, lyon lyons, marseille marseilles, metalist metallist, milan milano,
moscow moskva moskau moskwa, mumbai bombay, munich munchen, naples napoli, nottingham nottm,
nuremberg nurnberg, odessa odesa, prague praha prag, rangers rgrs, rome roma, saint st sankt,
salonika thessaloniki saloniki, seville sevilla, shakhtar shakhtyor shakhter shakhtior schachtar schachtjor,
tbilisi tiflis, turin torino, united utd, vienna wien, wanderers wdrs, warsaw warszawa warschau,
zaporizhzhia zaporozhye, zorya zarya zaria, borisov barysaw barysau, gomel homel, grodno hrodna,
karabakh qarabag qarabakh, karagandy karaganda, neman nyoman,
oleksandriya alexandriya aleksandriya oleksandria alexandria, pakhtakor paxtakor, samarkand samarqand,
tashkent toshkent, tobol tobyl, vitebsk vitsebsk, zhodino zhodzina, mineiro mg, paranaense pr, goianiense go
"""

_LETTERS = {
    ord(letter): text
    for letters, texts in (
        ("абвгдезийклмнопрстуфыэіїєґў", "abvgdeziyklmnoprstufyeiyegu"),
        ("αβγδεζηικλμνοπρστυφω", "avgdeziiklmnoprstyfo"),
        (
            "жхцчшщюяъьђјљњћџ",
            ("zh", "kh", "ts", "ch", "sh", "shch", "yu", "ya", "", "", "dj", "j", "lj", "nj", "c", "dz"),
        ),
        ("θξχψ", ("th", "x", "ch", "ps")),
        ("øłđðþıæœəħ", ("o", "l", "d", "d", "th", "i", "ae", "oe", "a", "h")),
    )
    for letter, text in zip(letters, texts, strict=True)
}
_GREEK_PAIRS = (("ει", "i"), ("οι", "i"), ("ου", "u"))
# Applied in this order: one letter for each sound that schemes of transliteration write in several ways.
_SPELLINGS = (
    (r"shch|tsch|tch|sch|sh", "s"),
    (r"zh", "z"),
    (r"kh", "h"),
    (r"gh", "g"),
    (r"ph", "f"),
    (r"th", "t"),
    (r"ch|cz|tz|ts|tc", "c"),
    (r"ck|q", "k"),
    (r"c+(?=[aoulrtk])", "k"),
    (r"c", "s"),
    (r"x", "ks"),
    (r"w|(?<=.)ff?$", "v"),
    (r"ee|[yj]", "i"),
    (r"oo|ou", "u"),
    (r"ae", "a"),
    (r"oe", "o"),
    (r"ue", "u"),
    (r"z", "s"),
    (r"^ie", "e"),
    (r"(.)\1+", r"\1"),
)
_SOUNDS = tuple((re.compile(pattern), letter) for pattern, letter in _SPELLINGS)


@lru_cache(maxsize=16_384)  # a list filtered by team reads both names of every match
def plain(text: str) -> str:
    """Returns the text without accents and capitals, so that `Atletico` finds Atlético."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in folded if not unicodedata.combining(char))


def latin(text: str) -> str:
    found = plain(text)
    for letters, sound_of_both in _GREEK_PAIRS:
        found = found.replace(letters, sound_of_both)
    return found.translate(_LETTERS)


@lru_cache(maxsize=16_384)
def sound(word: str) -> str:
    """Returns the normal form of a word: equal for transliterations, and for the names of a city in two languages."""
    found = _sound(latin(word))
    return _SAME.get(found, found)


def _sound(word: str) -> str:
    for pattern, letter in _SOUNDS:
        word = pattern.sub(letter, word)
    return word


_SAME = {_sound(word): _sound(group.split()[0]) for group in _GROUPS.split(",") for word in group.split()}


def join_sponsors(text: str) -> str:
    return _SPONSORS_OF_TWO_WORDS.sub("redbull", text)


def is_optional(word: str) -> bool:
    """Returns whether some sources leave the word out: type of the club, sponsor, year."""
    found = latin(word)
    return found in _OPTIONAL or bool(_FOUNDED.match(found))
