"""Word tables of the English–French grammar, and the two lexicons cut from them.

To add a noun, write one line in ``NOUNS``. The small lexicon is the same tables, cut down to ``MINI_WORDS``.

How a line is read: columns are separated by blanks, forms by ``/``, kinds by ``,`` and the words of a French
expression by ``_``. Regular forms are left out: plurals in *-s*, feminines in *-e*, English verbs in *-s* and *-ed*.

A *kind* says what a noun names. Verbs, adjectives and prepositions list the kinds they go with, so that ministers
sign agreements and not the other way round. ``any`` stands for every kind.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

KINDS = ("person", "group", "animal", "text", "place", "region", "nature", "thing")
# gender (m, f) and number (s, p); the last two are the singulars before a vowel sound
FORMS = ("ms", "fs", "mp", "fp", "ms'", "fs'")
# an h that allows no elision ("le héros"); every other h is silent ("l' hôpital")
ASPIRATED_H = ("héros", "hibou", "hiboux", "hache", "haches")

# english  french  gender  kinds
NOUNS = """
agreement            accord            m  text
report               rapport           m  text
law                  loi               f  text
letter               lettre            f  text
book                 livre             m  text
question             question          f  text
answer               réponse           f  text
contract             contrat           m  text
newspaper            journal/journaux  m  text
poem                 poème             m  text
story/stories        histoire          f  text
area                 zone              f  region
country/countries    pays/pays         m  region
region               région            f  region
island               île               f  region
city/cities          ville             f  place
village              village           m  place
house                maison            f  place
school               école             f  place
university/universities  université    f  group,place
hospital             hôpital/hôpitaux  m  place
garden               jardin            m  place
market               marché            m  place
museum               musée             m  place
theatre              théâtre           m  place
factory/factories    usine             f  place
church/churches      église            f  place
castle               château/châteaux  m  place
hotel                hôtel             m  place
council              conseil           m  group
committee            comité            m  group
company/companies    entreprise        f  group
government           gouvernement      m  group
army/armies          armée             f  group
team                 équipe            f  group
family/families      famille           f  group
minister             ministre          m  person
woman/women          femme             f  person
man/men              homme             m  person
child/children       enfant            m  person
girl                 fille             f  person
boy                  garçon            m  person
doctor               médecin           m  person
student              étudiant          m  person
teacher              professeur        m  person
engineer             ingénieur         m  person
worker               ouvrier           m  person
farmer               fermier           m  person
artist               artiste           m  person
hero/heroes          héros/héros       m  person
friend               ami               m  person
neighbour            voisin            m  person
judge                juge              m  person
queen                reine             f  person
actress/actresses    actrice           f  person
bird                 oiseau/oiseaux    m  animal
cat                  chat              m  animal
dog                  chien             m  animal
horse                cheval/chevaux    m  animal
cow                  vache             f  animal
owl                  hibou/hiboux      m  animal
river                rivière           f  nature
forest               forêt             f  nature
mountain             montagne          f  nature
lake                 lac               m  nature
car                  voiture           f  thing
train                train             m  thing
boat                 bateau/bateaux    m  thing
machine              machine           f  thing
table                table             f  thing
window               fenêtre           f  thing
door                 porte             f  thing
key                  clé               f  thing
picture              tableau/tableaux  m  thing
clock                horloge           f  thing
axe                  hache             f  thing
tree                 arbre             m  thing
flower               fleur             f  thing
"""

# english  french  slot  kinds. Slots stand in English order. Those of BEFORE_NOUN precede the noun in French too; every
# other adjective follows it, the nearest first. Adjectives of "type" are never used after "is".
SLOTS = ("value", "size", "quality", "age", "colour", "origin", "type")
BEFORE_NOUN = ("value", "size", "age")
ADJECTIVES = """
new            nouveau/nouvelle/nouveaux/nouvelles/nouvel  age     person,group,text,place,region,thing
big            grand                                       size    group,animal,place,region,nature,thing
small          petit                                       size    any
old            vieux/vieille/vieux/vieilles/vieil          age     any
young          jeune                                       age     person,animal
beautiful      beau/belle/beaux/belles/bel                 value   person,animal,text,place,region,nature,thing
good           bon/bonne                                   value   person,group,text,place
important      important                                   quality  person,group,text,place,region
modern         moderne                                     quality  text,group,place,region,thing
famous         célèbre                                     quality  person,group,text,place,nature
difficult      difficile                                   quality  text
useful         utile                                       quality  text,animal,thing
secret         secret/secrète                              quality  text,group,place
dangerous      dangereux/dangereuse                        quality  person,animal,nature,thing
strange        étrange                                     quality  any
quiet          calme                                       quality  person,animal,place,region,nature
rich           riche                                       quality  person,group,region
intelligent    intelligent                                 quality  person,animal
happy          heureux/heureuse                            quality  person,animal
tired          fatigué                                     quality  person,animal
heavy          lourd                                       quality  thing
red            rouge                                       colour  thing
green          vert                                        colour  thing
blue           bleu                                        colour  thing
black          noir                                        colour  thing,animal
white          blanc/blanche                               colour  thing,animal
european       européen/européenne                         origin  any
french         français                                    origin  any
american       américain                                   origin  any
italian        italien/italienne                           origin  any
german         allemand                                    origin  any
economic       économique                                  type  text,group,region
political      politique                                   type  text,group
public         public/publique                             type  text,place
national       national/nationale/nationaux/nationales     type  text,group
international  international/internationale/internationaux/internationales  type  text,group
"""

# english: base/third person/past/participle.
# french: third persons singular and plural, participle, future[, être when the past is built with it].
# then the subject's kinds > the object's kinds
TRANSITIVE = """
sign                            signe/signent/signé/signera               person,group > text
see/sees/saw/seen               voit/voient/vu/verra                      person,group,animal > any
read/reads/read/read            lit/lisent/lu/lira                        person > text
write/writes/wrote/written      écrit/écrivent/écrit/écrira               person,group > text
accept                          accepte/acceptent/accepté/acceptera       person,group > text
change                          change/changent/changé/changera           person,group > text
forget/forgets/forgot/forgotten  oublie/oublient/oublié/oubliera          person > text,person,thing
love                            aime/aiment/aimé/aimera                   person > any
admire                          admire/admirent/admiré/admirera           person > any
find/finds/found/found          trouve/trouvent/trouvé/trouvera           person,group,animal > any
buy/buys/bought/bought          achète/achètent/acheté/achètera           person,group > thing,animal,place
sell/sells/sold/sold            vend/vendent/vendu/vendra                 person,group > thing,animal,place
visit                           visite/visitent/visité/visitera           person,group > place,region
build/builds/built/built        construit/construisent/construit/construira  person,group > place
close                           ferme/ferment/fermé/fermera               person,group > place
protect                         protège/protègent/protégé/protégera       person,group > person,place,region,nature
help                            aide/aident/aidé/aidera                   person,group > person,group,animal
thank                           remercie/remercient/remercié/remerciera   person,group > person,group
follow                          suit/suivent/suivi/suivra                 person,animal > person,animal
hear/hears/heard/heard          entend/entendent/entendu/entendra         person,animal > person,animal
paint                           peint/peignent/peint/peindra              person > person,animal,place,nature,thing
draw/draws/drew/drawn           dessine/dessinent/dessiné/dessinera       person > person,animal,place,nature,thing
"""
INTRANSITIVE = """
work                            travaille/travaillent/travaillé/travaillera  person,group
win/wins/won/won                gagne/gagnent/gagné/gagnera               person,group
hesitate                        hésite/hésitent/hésité/hésitera           person,group
sleep/sleeps/slept/slept        dort/dorment/dormi/dormira                person,animal
wait                            attend/attendent/attendu/attendra         person,animal
run/runs/ran/run                court/courent/couru/courra                person,animal
sing/sings/sang/sung            chante/chantent/chanté/chantera           person
speak/speaks/spoke/spoken       parle/parlent/parlé/parlera               person,group
smile                           sourit/sourient/souri/sourira             person
arrive                          arrive/arrivent/arrivé/arrivera/être      person,group,animal
stay                            reste/restent/resté/restera/être          person,group,animal
die/dies/died/died              meurt/meurent/mort/mourra/être            person,animal
fall/falls/fell/fallen          tombe/tombent/tombé/tombera/être          person,animal,thing
"""
# verbs with a clause: "says that ..."
CLAUSAL = """
say/says/said/said              dit/disent/dit/dira                       person,group
think/thinks/thought/thought    pense/pensent/pensé/pensera               person,group
believe                         croit/croient/cru/croira                  person,group
know/knows/knew/known           sait/savent/su/saura                      person,group
"""

# english singular/plural  french  weight; "-" where there is no form
DETERMINERS = """
the/the     le/la/les/les                   55
a/-         un/une/-/-                      30
this/these  ce/cette/ces/ces/cet/cette      12
his/his     son/sa/ses/ses/son/son          12
every/-     chaque/chaque/-/-                5
-/some      -/-/quelques/quelques           12
-/two       -/-/deux/deux                    8
-/three     -/-/trois/trois                  8
-/many      -/-/beaucoup_de/beaucoup_de      8
"""
# english  french  form (gender and number)
PRONOUNS = """
he    il   ms
she   elle fs
they  ils  mp
"""

# inside a noun phrase: english  french  kinds of the noun before > kinds of the noun after
PREPOSITIONS = """
of       de     person,group > group,place,region
of       de     place,text > group,region
of       de     animal,thing > person
on       sur    text > any
to       à      text > person,group
against  contre text > group
with     avec   person > person,animal,thing
without  sans   person > animal,thing
"""
# where something happens: english  french  kinds of the noun after
PLACES = """
in       dans      place,region,nature
at       à         place
near     près_de   place,nature
behind   derrière  place
"""
CONJUNCTIONS = """
and      et            60
but      mais          40
because  parce_que     20
or       ou            20
while    pendant_que   15
"""
ADVERBS = """
often    souvent
always   toujours
already  déjà
"""
MONTHS = """
january  janvier
march    mars
april    avril
june     juin
july     juillet
august   août
september  septembre
october  octobre
december  décembre
"""
YEARS = """
1985 1985
1989 1989
1992 1992
1993 1993
2004 2004
2015 2015
"""
DAYS = """
monday     lundi
tuesday    mardi
thursday   jeudi
friday     vendredi
saturday   samedi
"""
# a day without a preposition, and the tense it goes with
RELATIVE_DAYS = """
yesterday  hier    past
tomorrow   demain  future
"""

MINI_WORDS = """
agreement report law letter book question area country island city house school university hospital council
company government minister queen man student doctor child
european economic french political national important new old big small red
sign see read write visit protect sell work sleep win say
the a this every he she they of on to in near with and but because often always
june august october 1989 1992 2004 monday yesterday
"""
TENSES = {"mini": ("present", "past", "perfect"), "full": ("present", "past", "perfect", "future")}


class Word(NamedTuple):
    """An entry that has one form a side: conjunctions, months and the like."""

    english: str
    french: tuple[str, ...]
    extra: str = ""  # weight, tense or form, where the table has one


class Noun(NamedTuple):
    """``english`` and ``french`` by number (``s``, ``p``); gender ``m`` or ``f``."""

    english: dict[str, str]
    french: dict[str, str]
    gender: str
    kinds: tuple[str, ...]


class Adjective(NamedTuple):
    """``french`` by form (see ``FORMS``); ``slot`` is one of ``SLOTS``."""

    english: str
    french: dict[str, str]
    slot: str
    kinds: tuple[str, ...]


class Determiner(NamedTuple):
    """``english`` by number, ``french`` by form; a form that does not exist is missing."""

    english: dict[str, str]
    french: dict[str, tuple[str, ...]]
    weight: int


class Verb(NamedTuple):
    """``english`` by base/third/past/participle; ``present`` and ``future`` by number, ``participle`` by form."""

    english: dict[str, str]
    present: dict[str, str]
    participle: dict[str, str]
    future: dict[str, str]
    auxiliary: str  # of the French past: "avoir" or "être"
    subjects: tuple[str, ...]
    objects: tuple[str, ...] = ()


class Preposition(NamedTuple):
    """``kinds`` of the noun before it and ``objects``, the kinds of the noun after it."""

    english: str
    french: tuple[str, ...]
    kinds: tuple[str, ...]
    objects: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The tables that a grammar draws from. A table may be empty: its rule is then not used."""

    name: str
    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    transitive: tuple[Verb, ...]
    intransitive: tuple[Verb, ...]
    clausal: tuple[Verb, ...]
    determiners: tuple[Determiner, ...]
    pronouns: tuple[Word, ...]
    prepositions: tuple[Preposition, ...]
    places: tuple[Preposition, ...]
    conjunctions: tuple[Word, ...]
    adverbs: tuple[Word, ...]
    months: tuple[Word, ...]
    years: tuple[Word, ...]
    days: tuple[Word, ...]
    relative_days: tuple[Word, ...]
    tenses: tuple[str, ...]

    @cache  # noqa: B019 - there are two lexicons, and both live as long as the program
    def fitting(self, table: str, column: str, kinds: tuple[str, ...]) -> tuple:
        """Entries of ``table`` whose ``column`` shares a kind with ``kinds``."""
        return tuple(entry for entry in getattr(self, table) if not set(getattr(entry, column)).isdisjoint(kinds))

    @cache  # noqa: B019
    def weighted_determiners(self, number: str, negated: bool) -> tuple[list[Determiner], list[int]]:
        """The determiners of a noun in this number, and their weights; without ``some`` in a negated object."""
        options = [determiner for determiner in self.determiners
                   if number in determiner.english and not (negated and determiner.english[number] == "some")]
        return options, [determiner.weight for determiner in options]


def starts_with_vowel(word: str) -> bool:
    """Whether a French word starts with a vowel sound, so that the word before it is elided."""
    return word[0] in "aàâeéèêiîoôuœh" and word not in ASPIRATED_H


def forms(given: str) -> dict[str, str]:
    """All six forms of a French adjective or participle from the ones that are given (see ``FORMS``)."""
    known = given.split("/")
    masculine = known[0]
    feminine = known[1] if len(known) > 1 else masculine if masculine.endswith("e") else masculine + "e"
    regular = [masculine, feminine, plural(masculine), plural(feminine), masculine, feminine]
    return dict(zip(FORMS, known + regular[len(known):], strict=True))


def plural(word: str) -> str:
    """Regular plural of a French word."""
    return word if word[-1] in "sx" else word + "s"


def rows(table: str) -> Iterator[list[str]]:
    """Columns of each line of a table."""
    return (line.split() for line in table.strip().splitlines())


def kinds(column: str) -> tuple[str, ...]:
    """The kinds in a column such as ``person,group``; ``any`` is all of them."""
    found = KINDS if column == "any" else tuple(column.split(","))
    unknown = [kind for kind in found if kind not in KINDS]
    if unknown:
        raise ValueError(f"{column!r} names the kind {unknown[0]!r}; expected any, or some of {', '.join(KINDS)}.")
    return found


def read_noun(english: str, french: str, gender: str, of_kinds: str) -> Noun:
    """A line of ``NOUNS``."""
    singular, _, irregular = english.partition("/")
    mot, _, mots = french.partition("/")
    return Noun({"s": singular, "p": irregular or singular + "s"}, {"s": mot, "p": mots or plural(mot)},
                gender, kinds(of_kinds))


def read_verb(english: str, french: str, subjects: str, _: str = ">", objects: str = "") -> Verb:
    """A line of ``TRANSITIVE``, ``INTRANSITIVE`` or ``CLAUSAL``."""
    base = english.split("/")[0]
    past = base + ("d" if base.endswith("e") else "ed")
    parts = english.split("/") if "/" in english else (base, base + "s", past, past)
    he, they, participle, future, *rest = french.split("/")
    return Verb(dict(zip(("base", "third", "past", "participle"), parts, strict=True)), {"s": he, "p": they},
                forms(participle), {"s": future, "p": future[:-1] + "ont"}, rest[0] if rest else "avoir",
                kinds(subjects), kinds(objects) if objects else ())


def read_determiner(english: str, french: str, weight: str) -> Determiner:
    """A line of ``DETERMINERS``."""
    by_number = zip("sp", english.split("/"), strict=True)
    return Determiner({number: word for number, word in by_number if word != "-"},
                      {form: tuple(word.split("_")) for form, word in forms(french).items() if word != "-"},
                      int(weight))


def read_word(english: str, french: str, extra: str = "") -> Word:
    """A line of a table whose words have one form."""
    return Word(english, tuple(french.split("_")), extra)


def read_preposition(english: str, french: str, before: str, _: str = ">", after: str = "") -> Preposition:
    """A line of ``PREPOSITIONS`` (two kinds) or ``PLACES`` (only the kind after it)."""
    return Preposition(english, tuple(french.split("_")), kinds(before) if after else KINDS, kinds(after or before))


def headword(entry: NamedTuple) -> str:
    """The English word by which ``MINI_WORDS`` knows an entry: its first form."""
    return entry.english if isinstance(entry.english, str) else next(iter(entry.english.values()))


@cache
def load_lexicon(name: str) -> Lexicon:
    """The lexicon ``"mini"`` or ``"full"``.

    Raises:
        ValueError: for any other name.
    """
    if name not in TENSES:
        raise ValueError(f"There is no lexicon {name!r}; expected 'mini' or 'full'.")

    mini = MINI_WORDS.split()

    def read(table: str, reader: Callable) -> tuple:
        entries = [reader(*row) for row in rows(table)]
        return tuple(entry for entry in entries if name == "full" or headword(entry) in mini)

    return Lexicon(
        name=name,
        nouns=read(NOUNS, read_noun),
        adjectives=read(ADJECTIVES, lambda en, fr, slot, of: Adjective(en, forms(fr), slot, kinds(of))),
        transitive=read(TRANSITIVE, read_verb),
        intransitive=read(INTRANSITIVE, read_verb),
        clausal=read(CLAUSAL, read_verb),
        determiners=read(DETERMINERS, read_determiner),
        pronouns=read(PRONOUNS, read_word),
        prepositions=read(PREPOSITIONS, read_preposition),
        places=read(PLACES, read_preposition),
        conjunctions=read(CONJUNCTIONS, read_word),
        adverbs=read(ADVERBS, read_word),
        months=read(MONTHS, read_word),
        years=read(YEARS, read_word),
        days=read(DAYS, read_word),
        relative_days=read(RELATIVE_DAYS, read_word),
        tenses=TENSES[name],
    )
