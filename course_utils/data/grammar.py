"""English–French sentence pairs with their true word alignment, generated from a seed.

A *synchronous* grammar builds both sides at once: one rule for each kind of phrase, and each rule returns an English
and a French token list. A token is a word with its *link ids*. Every English word gets a new id when it is chosen
(``Grammar.word``), and every French word carries the ids of all English words it translates. So two words are linked
exactly when they share an id, however far the rules move them apart:

* one id on several French words: ``not`` -> ``ne … pas``, ``was`` -> ``a été``, ``signed`` -> ``a signé``;
* several ids on one French word: ``of the`` -> ``du``, ``does sign`` -> ``signe``, ``will sign`` -> ``signera``.

Contraction and elision come last, over the whole French sentence (``contract``, ``elide``). The words stand in
``lexicon.py``.
"""

from collections.abc import Iterable, Sequence
from operator import index
from random import Random
from typing import Any, NamedTuple

from . import BUCKETS
from .lexicon import (
    BEFORE_NOUN,
    KINDS,
    SLOTS,
    Adjective,
    Lexicon,
    Noun,
    Verb,
    load_lexicon,
    starts_with_vowel,
)

PHENOMENA = {
    "inversion": "an adjective before its English noun, after its French noun: new european law",
    "double_inversion": "two such adjectives, whose links cross: european economic area",
    "agreement": "an adjective or participle in the feminine or plural: signées",
    "negation": "not -> ne … pas",
    "elision": "a French word shortened before a vowel sound: l', d', n', qu'",
    "contraction": "a French preposition and article in one word: du, des, au, aux",
    "many_to_one": "a French word that is linked to several English words",
    "one_to_many": "an English word that is linked to several French words",
    "coordination": "two clauses or noun phrases joined by a conjunction",
    "relative": "a clause that belongs to a noun: that signed -> qui a signé",
    "passive": "was signed -> a été signé",
    "subordinate": "a clause as object: says that -> dit que",
    "adverb": "an adverb before the English verb, after the French one: often signs -> signe souvent",
}

CONTRACTIONS = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
ELISIONS = {"le": "l'", "la": "l'", "de": "d'", "ne": "n'", "que": "qu'"}
AVOIR, ÊTRE = {"s": "a", "p": "ont"}, {"s": "est", "p": "sont"}
SERA = {"s": "sera", "p": "seront"}

# How often each alternative is taken, relative to the others.
CLAUSES = {1: 42, 2: 32, 3: 16, 4: 10}
NUMBERS = {"s": 66, "p": 34}
SUBJECTS = {"pronoun": 14, "agent": 56, "any": 30}
NOUN_PHRASES = {"one": 92, "two": 8}
ADJECTIVES = {"": 50, "before": 14, "after": 20, "after after": 8, "before after": 5, "before after after": 3}
COMPLEMENTS = {"none": 52, "prepositional": 32, "relative": 16}
FRAMES = {"transitive": 46, "intransitive": 12, "copula": 12, "passive": 22, "clausal": 8}
TENSE_WEIGHTS = {"present": 35, "past": 35, "perfect": 15, "future": 15}
POLARITY = {"positive": 82, "negative": 18}

ATTEMPTS = 20_000  # sentences tried for one pair before giving up

Token = tuple[str, tuple[int, ...]]  # a word and its link ids
Tokens = list[Token]


class Pair(NamedTuple):
    """A sentence and its translation.

    Attributes:
        source: English tokens, lower case; the last is the full stop.
        target: French tokens; an elided word is a token of its own (``l'``).
        links: sorted pairs ``(target position, source position)`` from zero, like the cells of an attention matrix.
        phenomena: names from ``PHENOMENA``.
        inverted: for each noun phrase whose adjectives change sides, from left to right, the links of these adjectives
            and their noun, which cross in a matrix. In ``EXAMPLE`` that is one, ``european economic area``.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    phenomena: frozenset[str]
    inverted: tuple[frozenset[tuple[int, int]], ...] = ()


# The sentence of Bahdanau et al. (2015), figure 3a. The grammar can derive it; ``corpus`` never returns it.
EXAMPLE = Pair(
    ("the", "agreement", "on", "the", "european", "economic", "area", "was", "signed", "in", "august", "1992", "."),
    ("l'", "accord", "sur", "la", "zone", "économique", "européenne", "a", "été", "signé", "en", "août", "1992", "."),
    ((0, 0), (1, 1), (2, 2), (3, 3), (4, 6), (5, 5), (6, 4), (7, 7), (8, 7), (9, 8), (10, 9), (11, 10), (12, 11),
     (13, 12)),
    frozenset({"inversion", "double_inversion", "agreement", "elision", "one_to_many", "passive"}),
    (frozenset({(4, 6), (5, 5), (6, 4)}),),
)


class Phrase(NamedTuple):
    """Both sides of a phrase."""

    english: Tokens
    french: Tokens


class NounPhrase(NamedTuple):
    """Both sides, the form that agrees with it (gender and number, such as ``fp``), and what it names."""

    english: Tokens
    french: Tokens
    form: str
    kinds: tuple[str, ...]


def seeded(n: int, seed: int) -> Random:
    """Random decisions for ``n`` examples; n or seed below 0 is a ValueError (``Random(-1)`` is ``Random(1)``)."""
    for name, number in (("n", n), ("seed", seed)):
        if index(number) < 0:
            raise ValueError(f"{name} is {number}; expected at least 0.")
    return Random(seed)


class Grammar:
    """The rules. Each method builds the phrase it is named after and makes its choices through ``choose``."""

    def __init__(self, words: Lexicon, rng: Random):
        """Draw words from ``words`` and decisions from ``rng``."""
        self.words, self.rng = words, rng
        self.tenses = {tense: TENSE_WEIGHTS[tense] for tense in words.tenses}
        self.last_id, self.phenomena = 0, set()
        self.inverted = []  # link ids of each noun and its adjectives that change sides
        self.used = set()  # nouns, verbs and adjectives of the current clause, by id()

    # choices and links

    def choose(self, what: str, options: Sequence | dict[str, float], weights: Sequence[float] = ()) -> Any:
        """One of ``options``, uniformly or by ``weights`` (the values of a dictionary). ``what`` names the decision.

        Only ``random()`` is used: it gives the same numbers on every platform and in every Python version.
        """
        drawn = self.rng.random()
        if isinstance(options, dict):
            weighted, left = options.items(), drawn * sum(options.values())
        elif weights:
            weighted, left = zip(options, weights, strict=True), drawn * sum(weights)
        else:
            return options[int(drawn * len(options))]
        for option, weight in weighted:
            if left < weight:
                return option
            left -= weight
        return option  # rounding left nothing for it

    def fresh(self, what: str, entries: Sequence) -> Any:
        """One of ``entries`` that this clause does not have yet, as long as there is one."""
        entry = self.choose(what, [entry for entry in entries if id(entry) not in self.used] or entries)
        self.used.add(id(entry))
        return entry

    def word(self, english: str) -> tuple[Token, tuple[int, ...]]:
        """An English token with a new link id, and the id for the French words that translate it."""
        self.last_id += 1
        return (english, (self.last_id,)), (self.last_id,)

    def phrase(self, english: str, french: Iterable[str]) -> Phrase:
        """An English word and the French words that translate it."""
        token, link = self.word(english)
        return Phrase([token], [(mot, link) for mot in french])

    def agreed(self, forms: dict[str, str], form: str) -> str:
        """The form of an adjective or participle that agrees."""
        if form != "ms":
            self.phenomena.add("agreement")
        return forms[form]

    # sentence and clause

    def sentence(self, clauses: int) -> Pair:
        """CLAUSE (CONJUNCTION CLAUSE)… ``.``"""
        self.last_id, self.phenomena, self.inverted = 0, set(), []
        english, french = self.clause()
        for _ in range(clauses - 1):
            weights = [int(conjunction.extra) for conjunction in self.words.conjunctions]
            joining = self.phrase(*self.choose("conjunction", self.words.conjunctions, weights)[:2])
            following = self.clause()
            english = english + joining.english + following.english
            french = french + joining.french + following.french
            self.phenomena.add("coordination")
        stop = self.phrase(".", ["."])
        return self.spell(english + stop.english, french + stop.french)

    def clause(self, depth: int = 2) -> Phrase:
        """SUBJECT VERB-PHRASE. ``depth`` says how many phrases may be nested in its noun phrases."""
        self.used = set()
        subject = self.subject(depth)
        english, french = self.verb_phrase(subject.form, subject.kinds, depth)
        return Phrase(subject.english + english, subject.french + french)

    def subject(self, depth: int) -> NounPhrase:
        """PRONOUN, or a noun phrase, more often one that can act."""
        kind = self.choose("subject", SUBJECTS)
        if kind == "pronoun":
            return self.pronoun()
        return self.noun_phrases(("person", "group", "animal") if kind == "agent" else KINDS, depth)

    def pronoun(self) -> NounPhrase:
        """``he``, ``she``, ``they``: people."""
        pronoun = self.choose("pronoun", self.words.pronouns)
        return NounPhrase(*self.phrase(pronoun.english, pronoun.french), pronoun.extra, ("person",))

    # noun phrases

    def noun_phrases(self, kinds: tuple[str, ...], depth: int, negated: bool = False) -> NounPhrase:
        """NOUN-PHRASE, or NOUN-PHRASE ``and`` NOUN-PHRASE, which is masculine unless both are feminine."""
        first = self.noun_phrase(kinds, depth, negated)
        if negated or self.choose("noun phrases", NOUN_PHRASES) == "one":
            return first
        joining = self.phrase("and", ["et"])
        second = self.noun_phrase(first.kinds, 0)
        self.phenomena.add("coordination")
        form = "fp" if first.form[0] == second.form[0] == "f" else "mp"
        common = tuple(kind for kind in first.kinds if kind in second.kinds)
        return NounPhrase(first.english + joining.english + second.english,
                          first.french + joining.french + second.french, form, common)

    def noun_phrase(self, kinds: tuple[str, ...], depth: int = 0, negated: bool = False) -> NounPhrase:
        """DETERMINER ADJECTIVES NOUN, with a COMPLEMENT if ``depth`` is left.

        ``negated`` is the object of a negated verb: ``not … a letter`` -> ``ne … pas de lettre``.
        """
        noun = self.fresh("noun", self.words.fitting("nouns", "kinds", kinds))
        number = self.choose("number", NUMBERS)
        form = noun.gender + number
        english, french = self.phrase(noun.english[number], [noun.french[number]])
        adjectives = self.adjectives(noun)
        for adjective in adjectives:
            english, french = self.add_adjective(adjective, form, english, french)
        after = sum(adjective.slot not in BEFORE_NOUN for adjective in adjectives)
        if after:
            self.phenomena.update(("inversion", "double_inversion")[:after])
            self.inverted.append([link for _, (link,) in french[-after - 1:]])  # the noun and what follows it
        english, french = self.add_determiner(form, english, french, negated)
        if depth:
            more = self.complement(noun, form, depth - 1)
            english, french = english + more.english, french + more.french
        return NounPhrase(english, french, form, noun.kinds)

    def adjectives(self, noun: Noun) -> list[Adjective]:
        """Up to three adjectives that go with the noun, the nearest (in English) first, at most one from each slot."""
        chosen = []
        for place in self.choose("adjectives", ADJECTIVES).split():
            taken = [adjective.slot for adjective in chosen]
            options = [adjective for adjective in self.words.fitting("adjectives", "kinds", noun.kinds)
                       if (adjective.slot in BEFORE_NOUN) == (place == "before") and adjective.slot not in taken]
            if options:
                chosen.append(self.choose("adjective", options))
        return sorted(chosen, key=lambda adjective: -SLOTS.index(adjective.slot))

    def add_adjective(self, adjective: Adjective, form: str, english: Tokens, french: Tokens) -> Phrase:
        """ADJECTIVE NOUN -> NOUN ADJECTIVE, but ADJECTIVE NOUN for age, beauty, goodness and size."""
        self.used.add(id(adjective))
        token, link = self.word(adjective.english)
        if adjective.slot in BEFORE_NOUN:
            mot = self.agreed(adjective.french, form)
            if form[1] == "s" and starts_with_vowel(french[0][0]):
                mot = adjective.french[form + "'"]
            return Phrase([token, *english], [(mot, link), *french])
        return Phrase([token, *english], [*french, (self.agreed(adjective.french, form), link)])

    def add_determiner(self, form: str, english: Tokens, french: Tokens, negated: bool) -> Phrase:
        """``the``, ``a``, ``this`` … in front, in the form that the next word asks for."""
        number = form[1]
        determiner = self.choose("determiner", *self.words.weighted_determiners(number, negated))
        word = determiner.english[number]
        token, link = self.word(indefinite(english[0][0]) if word == "a" else word)
        vowel = number == "s" and starts_with_vowel(french[0][0])
        mots = ("de",) if negated and word == "a" else determiner.french[form + "'" if vowel else form]
        return Phrase([token, *english], [*((mot, link) for mot in mots), *french])

    def complement(self, noun: Noun, form: str, depth: int) -> Phrase:
        """Nothing, a prepositional phrase or a relative clause."""
        kind = self.choose("complement", COMPLEMENTS)
        prepositions = self.words.fitting("prepositions", "kinds", noun.kinds)
        if kind == "prepositional" and prepositions:
            preposition = self.choose("preposition", prepositions)
            return self.prepositional_phrase(preposition, depth)
        if kind == "relative":
            return self.relative_clause(noun, form, depth)
        return Phrase([], [])

    def prepositional_phrase(self, preposition: Any, depth: int) -> Phrase:
        """PREPOSITION NOUN-PHRASE."""
        english, french = self.phrase(preposition.english, preposition.french)
        following = self.noun_phrase(preposition.objects, depth)
        return Phrase(english + following.english, french + following.french)

    def relative_clause(self, noun: Noun, form: str, depth: int) -> Phrase:
        """``that`` VERB-PHRASE -> ``qui`` …, or ``that`` SUBJECT VERB -> ``que`` …, whose participle agrees."""
        self.phenomena.add("relative")
        verbs = self.words.fitting("transitive", "objects", noun.kinds)
        if self.choose("relative", ("subject", "object")) == "subject" or not verbs:
            english, french = self.phrase("that", ["qui"])
            following = self.verb_phrase(form, noun.kinds, depth, adjuncts=False)
            return Phrase(english + following.english, french + following.french)
        english, french = self.phrase("that", ["que"])
        verb = self.fresh("verb", verbs)
        subject = self.pronoun() if self.choose("subject", SUBJECTS) == "pronoun" else self.noun_phrase(verb.subjects)
        following, _, _ = self.active(verb, subject.form, before=form)
        return Phrase(english + subject.english + following.english, french + subject.french + following.french)

    # verb phrases

    def verb_phrase(self, form: str, kinds: tuple[str, ...], depth: int, adjuncts: bool = True) -> Phrase:
        """A verb and what belongs to it, for a subject of this form and these kinds; then where and when."""
        options = self.frames(kinds, depth)
        frame = self.choose("frame", {name: FRAMES[name] for name in options})
        (english, french), tense = getattr(self, frame)(options[frame], form, depth)
        if adjuncts and frame != "clausal":
            for adjunct in (self.place(frame), self.time(tense)):
                english, french = english + adjunct.english, french + adjunct.french
        return Phrase(english, french)

    def frames(self, kinds: tuple[str, ...], depth: int) -> dict[str, Sequence]:
        """The kinds of verb phrase that a subject can have, each with the words for it."""
        found = {
            "transitive": self.words.fitting("transitive", "subjects", kinds),
            "intransitive": self.words.fitting("intransitive", "subjects", kinds),
            "copula": [adjective for adjective in self.words.fitting("adjectives", "kinds", kinds)
                       if adjective.slot != "type" and id(adjective) not in self.used],
            "passive": self.words.fitting("transitive", "objects", kinds),
            "clausal": self.words.fitting("clausal", "subjects", kinds) if depth else (),
        }
        return {name: words for name, words in found.items() if words}

    def transitive(self, verbs: Sequence[Verb], form: str, depth: int) -> tuple[Phrase, str]:
        """VERB NOUN-PHRASE."""
        verb = self.fresh("verb", verbs)
        (english, french), tense, negated = self.active(verb, form)
        thing = self.noun_phrases(verb.objects, depth, negated)
        return Phrase(english + thing.english, french + thing.french), tense

    def intransitive(self, verbs: Sequence[Verb], form: str, depth: int) -> tuple[Phrase, str]:
        """VERB."""
        phrase, tense, _ = self.active(self.fresh("verb", verbs), form)
        return phrase, tense

    def clausal(self, verbs: Sequence[Verb], form: str, depth: int) -> tuple[Phrase, str]:
        """VERB ``that`` CLAUSE, in the present: ``says that`` -> ``dit que``."""
        verb = self.fresh("verb", verbs)
        english, french = self.phrase(verb.english["third" if form[1] == "s" else "base"], [verb.present[form[1]]])
        joining = self.phrase("that", ["que"])
        following = self.clause(depth - 1)
        self.phenomena.add("subordinate")
        return Phrase(english + joining.english + following.english,
                      french + joining.french + following.french), "present"

    def copula(self, adjectives: Sequence[Adjective], form: str, depth: int) -> tuple[Phrase, str]:
        """``is`` ADJECTIVE -> ``est`` ADJECTIVE, which agrees with the subject."""
        adjective = self.choose("adjective", adjectives)
        negated = self.choose("polarity", POLARITY) == "negative"
        verb = self.phrase("is" if form[1] == "s" else "are", [ÊTRE[form[1]]])
        english, french = self.negate(*verb) if negated else self.add_adverb(verb.english, verb.french, after=1)
        token, link = self.word(adjective.english)
        return Phrase([*english, token], [*french, (self.agreed(adjective.french, form), link)]), "present"

    def passive(self, verbs: Sequence[Verb], form: str, depth: int) -> tuple[Phrase, str]:
        """``was`` PARTICIPLE (``by`` NOUN-PHRASE) -> ``a été`` PARTICIPLE (``par`` …), which agrees."""
        verb = self.fresh("verb", verbs)
        tense = self.choose("tense", self.tenses)
        negated = self.choose("polarity", POLARITY) == "negative"
        english, french = self.be(tense, form[1])
        token, link = self.word(verb.english["participle"])
        english, french = [*english, token], [*french, (self.agreed(verb.participle, form), link)]
        if negated:
            english, french = self.negate(english, french)
        if self.choose("agent", {"no": 60, "yes": 40}) == "yes":
            by = self.phrase("by", ["par"])
            agent = self.noun_phrase(verb.subjects, max(depth - 1, 0))
            english, french = english + by.english + agent.english, french + by.french + agent.french
        self.phenomena.add("passive")
        return Phrase(english, french), tense

    def be(self, tense: str, number: str) -> Phrase:
        """``is``, ``was``, ``has been``, ``will be`` -> ``est``, ``a été``, ``a été``, ``sera``."""
        if tense == "present":
            return self.phrase("is" if number == "s" else "are", [ÊTRE[number]])
        if tense == "past":
            return self.phrase("was" if number == "s" else "were", [AVOIR[number], "été"])
        (first, one), (second, two) = (self.word("will"), self.word("be")) if tense == "future" else (
            self.word("has" if number == "s" else "have"), self.word("been"))
        french = [(SERA[number], one + two)] if tense == "future" else [(AVOIR[number], one), ("été", two)]
        return Phrase([first, second], french)

    def active(self, verb: Verb, form: str, before: str = "ms") -> tuple[Phrase, str, bool]:
        """A verb with auxiliary, ``not`` or adverb; also its tense, and whether it is negated.

        Args:
            verb: the verb.
            form: of the subject; with ``être`` the participle agrees with it.
            before: form of an object that comes before the verb; with ``avoir`` the participle agrees with that.
        """
        tense = self.choose("tense", self.tenses)
        negated = self.choose("polarity", POLARITY) == "negative"
        number = form[1]
        helper = self.english_auxiliary(tense, number, negated)
        part = {"past": "past", "perfect": "participle", "present": "third" if number == "s" else "base"}
        token, link = self.word(verb.english["base" if helper and tense != "perfect" else part[tense]])
        auxiliary, auxiliary_link = self.word(helper) if helper else (None, link)
        english = [auxiliary, token] if helper else [token]
        if tense in ("present", "future"):
            both = auxiliary_link + link if helper else link
            french = [((verb.present if tense == "present" else verb.future)[number], both)]
        else:
            aux, agreeing = (ÊTRE, form) if verb.auxiliary == "être" else (AVOIR, before)
            french = [(aux[number], auxiliary_link), (self.agreed(verb.participle, agreeing), link)]
        phrase = self.negate(english, french) if negated else self.add_adverb(english, french)
        return phrase, tense, negated

    @staticmethod
    def english_auxiliary(tense: str, number: str, negated: bool) -> str:
        """``has`` and ``will`` by tense, ``do`` for a verb that is negated, nothing otherwise."""
        if tense == "perfect":
            return "has" if number == "s" else "have"
        if tense == "future":
            return "will"
        if not negated:
            return ""
        return "did" if tense == "past" else "does" if number == "s" else "do"

    def negate(self, english: Tokens, french: Tokens) -> Phrase:
        """``not`` after the first English verb -> ``ne … pas`` around the first French verb."""
        self.phenomena.add("negation")
        token, link = self.word("not")
        return Phrase([english[0], token, *english[1:]], [("ne", link), french[0], ("pas", link), *french[1:]])

    def add_adverb(self, english: Tokens, french: Tokens, after: int = 0) -> Phrase:
        """Now and then, an adverb: before the main verb (or after ``is``) -> after the first French verb."""
        if not self.words.adverbs or self.choose("adverb", {"no": 90, "yes": 10}) == "no":
            return Phrase(english, french)
        self.phenomena.add("adverb")
        adverb = self.choose("which adverb", self.words.adverbs)
        at = after or len(english) - 1
        more = self.phrase(adverb.english, adverb.french)
        return Phrase(english[:at] + more.english + english[at:], french[:1] + more.french + french[1:])

    # where and when

    def place(self, frame: str) -> Phrase:
        """``in the city`` -> ``dans la ville``, after verbs without an object."""
        if frame != "intransitive" or not self.words.places or self.choose("place", ("no", "yes")) == "no":
            return Phrase([], [])
        return self.prepositional_phrase(self.choose("preposition", self.words.places), 0)

    def time(self, tense: str) -> Phrase:
        """``in august 1992``, ``on monday``, ``yesterday``: for past and future only."""
        if tense not in ("past", "future") or self.choose("time", {"no": 75, "yes": 25}) == "no":
            return Phrase([], [])
        days = [day for day in self.words.relative_days if day.extra == tense]
        options = {"month": 3, "year": 2 if tense == "past" else 0, "month year": 4 if tense == "past" else 0,
                   "day": 3 if self.words.days else 0, "relative day": 2 if days else 0}
        kind = self.choose("which time", options)
        if kind == "relative day":
            return self.phrase(*self.choose("day", days)[:2])
        if kind == "day":
            day = self.choose("day", self.words.days)
            (on, one), (word, two) = self.word("on"), self.word(day.english)
            return Phrase([on, word], [(mot, one + two) for mot in day.french])
        english, french = self.phrase("in", ["en"])
        for part in kind.split():
            more = self.phrase(*self.choose(part, self.words.months if part == "month" else self.words.years)[:2])
            english, french = english + more.english, french + more.french
        return Phrase(english, french)

    # spelling

    def spell(self, english: Tokens, french: Tokens) -> Pair:
        """Contract and elide the French side, and turn shared ids into links."""
        contracted = contract(french)
        elided = elide(contracted)
        position = {link: i for i, (_, (link,)) in enumerate(english)}
        links = sorted({(j, position[link]) for j, (_, ids) in enumerate(elided) for link in ids})
        found = {
            "contraction": len(contracted) < len(french),
            "elision": elided != contracted,
            "many_to_one": len(links) > len(elided),
            "one_to_many": len({i for _, i in links}) < len(links),
        }
        self.phenomena.update(name for name, present in found.items() if present)
        columns = sorted(sorted(position[link] for link in ids) for ids in self.inverted)
        inverted = tuple(frozenset(link for link in links if link[1] in phrase) for phrase in columns)
        return Pair(tuple(word for word, _ in english), tuple(mot for mot, _ in elided), tuple(links),
                    frozenset(self.phenomena), inverted)


def indefinite(following: str) -> str:
    """``a`` or ``an``, by the sound that follows: ``an area``, ``a european area``, ``a university``."""
    return "an" if following[0] in "aeiou" and not following.startswith(("eu", "uni", "use")) else "a"


def contract(french: Tokens) -> Tokens:
    """``de le`` -> ``du``, ``à les`` -> ``aux``; but ``de l'`` and ``à l'`` stay two words."""
    out: Tokens = []
    for k, (mot, ids) in enumerate(french):
        short = CONTRACTIONS.get((out[-1][0], mot)) if out and mot in ("le", "les") else None
        if short and not (mot == "le" and starts_with_vowel(french[k + 1][0])):
            out[-1] = (short, out[-1][1] + ids)
        else:
            out.append((mot, ids))
    return out


def elide(french: Tokens) -> Tokens:
    """``le accord`` -> ``l' accord``, ``que il`` -> ``qu' il``."""
    following = [mot for mot, _ in french[1:]] + ["."]
    return [(ELISIONS[mot] if mot in ELISIONS and starts_with_vowel(after) else mot, ids)
            for (mot, ids), after in zip(french, following, strict=True)]


def corpus(n: int, seed: int = 0, lexicon: str = "mini", min_len: int = 4, max_len: int = 40,
           lengths: str = "natural", exclude: Iterable[Pair] = ()) -> list[Pair]:
    """``n`` sentence pairs, no source sentence twice. The same arguments give the same pairs everywhere.

    Args:
        n: number of pairs, at least 0.
        seed: of the random decisions, at least 0.
        lexicon: ``"mini"`` (about 70 dictionary words, learnt fast) or ``"full"`` (about 200).
        min_len: fewest English tokens, at least 4; the full stop counts.
        max_len: most English tokens, up to 40. The French side has at most ``max_len + 10``.
        lengths: ``"natural"`` as the grammar makes them, or ``"uniform"``: the same number from each of ``BUCKETS``
            (as far as they lie within ``min_len`` and ``max_len``), taken in turn.
        exclude: pairs whose source sentences must not appear.

    Raises:
        ValueError: for arguments out of range, or when there are not enough different sentences of these lengths.
    """
    if not 4 <= min_len <= max_len <= 40:
        raise ValueError(f"min_len={min_len}, max_len={max_len}; expected 4 <= min_len <= max_len <= 40.")
    if lengths not in ("natural", "uniform"):
        raise ValueError(f"lengths={lengths!r}; expected 'natural' or 'uniform'.")
    buckets = [(max(low, min_len), min(high, max_len)) for low, high in BUCKETS if low <= max_len and high >= min_len]
    grammar = Grammar(load_lexicon(lexicon), seeded(n, seed))
    seen = {EXAMPLE.source, *(pair.source for pair in exclude)}
    pairs = []
    for i in range(n):
        low, high = buckets[i % len(buckets)] if lengths == "uniform" else (min_len, max_len)
        for _ in range(ATTEMPTS):
            pair = grammar.sentence(clauses_for(grammar, high, lengths))
            if low <= len(pair.source) <= high and len(pair.target) <= max_len + 10 and pair.source not in seen:
                break
        else:
            raise ValueError(f"n={n} pairs were asked for; after {i}, {ATTEMPTS} attempts found no new sentence of "
                             f"{low} to {high} tokens. Ask for fewer, allow more lengths or take lexicon='full'.")
        seen.add(pair.source)
        pairs.append(pair)
    return pairs


def clauses_for(grammar: Grammar, high: int, lengths: str) -> int:
    """Number of clauses to try: natural, or one that suits a bucket, at nine to twelve tokens a clause."""
    if lengths == "natural":
        return grammar.choose("clauses", CLAUSES)
    return grammar.choose("clauses", (max(1, high // 12), max(1, high // 9)))


def train_test(n_train: int, n_test: int, seed: int = 0) -> tuple[list[Pair], list[Pair]]:
    """Training pairs of natural lengths, and test pairs spread evenly over the length buckets.

    No test sentence is a training sentence. If ``n_test`` is no multiple of the number of buckets, the first buckets
    hold one pair more. Errors as in :func:`corpus`.
    """
    seeded(n_train, seed)
    test = corpus(n_test, 2 * seed + 1, lengths="uniform")
    return corpus(n_train, 2 * seed, exclude=test), test
