"""Three small tasks, generated from a seed: pairs of sentences, questions about a passage, names to be tagged.

Each generator fills templates with names, and knows the truth because it wrote it: where an answer stands, which tag a
word has, whether a sentence follows from another. All take ``unseen_names`` and ``unseen_templates``: names, and ways
to say it, that never occur without them. In the tables below the training part stands first, the unseen part second.
"""

from random import Random
from string import Formatter
from typing import NamedTuple

from .grammar import seeded

TAGS = ("O", "PER", "LOC", "ORG", "DATE")
"""Of `tagged_sentences`: no name, a person, a place, an organisation, a date."""

Part = tuple[str, ...]
"""Words or templates: those of the training part of a table, or the unseen ones."""


class SentencePair(NamedTuple):
    """Two sentences; ``follows``: whether the second must be true if the first is; ``kind``: what changed, or same."""

    first: str
    second: str
    follows: bool
    kind: str


class SpanQuestion(NamedTuple):
    """A question about a passage. The answer is ``passage[start:end]``; ``kind`` says what is asked for."""

    passage: str
    question: str
    start: int
    end: int
    kind: str

    @property
    def answer(self) -> str:
        """The words of the passage that answer."""
        return self.passage[self.start:self.end]


class TaggedSentence(NamedTuple):
    """Words, a place in ``TAGS`` for each, and whether the word is one that has several (``Paris lives in Paris``)."""

    words: tuple[str, ...]
    tags: tuple[int, ...]
    ambiguous: tuple[bool, ...]


def fill(template: str, words: dict[str, str]) -> tuple[str, dict[str, tuple[int, int]]]:
    """A sentence from a template with ``{slots}``, and where in it each slot's words begin and end."""
    text, spans = "", {}
    for plain, slot, *_ in Formatter().parse(template):
        text += plain
        if slot:
            spans[slot] = len(text), len(text) + len(words[slot])
            text += words[slot]
    return text[0].upper() + text[1:], spans


def cut(training: str, unseen: str) -> tuple[Part, Part]:
    """A table: words or templates of the training part, and the unseen ones, each given divided by ``|``."""
    return tuple(training.split("|")), tuple(unseen.split("|"))


def by_kind(**kinds: str) -> tuple[tuple[str, str], ...]:
    """Pairs ``(template, kind)`` of questions, given for each kind divided by ``|``."""
    return tuple((template, kind) for kind, templates in kinds.items() for template in templates.split("|"))


# --- does the second sentence follow from the first? ------------------------------------------------------------

CATEGORIES = {
    "an animal": cut("a dog|a horse|a rabbit|a goat|a parrot|a tiger|a camel", "a sheep|a wolf|a donkey|a squirrel"),
    "a fruit": cut("a banana|a pear|a mango|a cherry|a lemon", "a peach|a plum|a strawberry|a melon"),
    "a vehicle": cut("a truck|a bicycle|a tractor|a taxi|a bus", "a motorcycle|a van|a tram|a car"),
    "an instrument": cut("a violin|a piano|a trumpet|a flute|a guitar", "a cello|a saxophone|a harp|a clarinet"),
    "a tool": cut("a hammer|a spade|a drill|a wrench|a shovel", "an axe|a chisel|a rake|a screwdriver"),
    "a building": cut("a church|a hospital|a castle|a library|a hotel", "a school|a museum|a barn|a cathedral"),
    "an insect": cut("an ant|a bee|a wasp|a beetle|a mosquito", "a butterfly|a moth|a grasshopper|a cricket"),
}
WHO = cut("Anna|my uncle|the teacher|a tourist|our neighbour|the old man|Maria|Ben", "Karl|the doctor|my sister|Laura")
DID = {"saw": "see", "found": "find", "photographed": "photograph", "described": "describe", "liked": "like"}
FIRST = cut("{who} {did} {thing}.", "one day {who} {did} {thing}.|it was {thing} that {who} {did}.")
SECOND = cut("{who} {did} {category}.|it was {category} that {who} {did}.",
             "what {who} {did} was {category}.|the one who {did} {category} was {who}.")
DENIAL = cut("{who} did not {do} {category}.", "{who} never {did} {category}.")


def sentence_pairs(n: int, seed: int = 0, unseen_names: bool = False,
                   unseen_templates: bool = False) -> list[SentencePair]:
    """``n`` pairs; in half of them the second sentence follows, in the others it names something else or denies.

    *Names* are the people and the things: that a sheep is an animal is never said.
    """
    rng, pairs = seeded(n, seed), []
    for _ in range(n):
        category = rng.choice(list(CATEGORIES))
        words = {"who": rng.choice(WHO[unseen_names]), "category": category,
                 "thing": rng.choice(CATEGORIES[category][unseen_names])}
        words["did"], words["do"] = rng.choice(list(DID.items()))
        first, _ = fill(rng.choice(FIRST[unseen_templates]), words)
        kind = rng.choice(("same", "same", "same", "category", "category", "denied"))
        if kind == "category":
            words["category"] = rng.choice([other for other in CATEGORIES if other != category])
        second, _ = fill(rng.choice((DENIAL if kind == "denied" else SECOND)[unseen_templates]), words)
        pairs.append(SentencePair(first, second, kind == "same", kind))
    return pairs


# --- which words of the passage answer the question? ------------------------------------------------------------

NAMES = {
    "person": cut("Anna|Ben|Carla|David|Elena|Felix|Grace|Hugo|Irene|Jonas|Karin|Leo|Olga|Paul|Rosa|Simon|Tara|Victor|"
                  "Omar|Priya|Lucia|Pedro|Kofi|Amina|Anna Becker|David Costa|Elena Rossi|Hugo Lopez|Tara Patel|"
                  "Paul Ito",
                  "Sofia|Marcus|Nadia|Oscar|Helen|Ravi|Theo|Bianca Quinn|Marcus Sato|Nadia Petrov"),
    "institute": cut("Nova|Vertex|Orion|Helix|Polar|Summit|Atlas|Delta|Cobalt|Apex|Zenith|Lumen|Falcon|Harbor|Juniper|"
                     "Nova Labs|Orion Institute|Summit Hospital|Delta Works|Apex Systems|Falcon Foundation",
                     "Aurora|Beacon|Cascade|Prism|Sierra|Willow|Aurora Clinic|Prism Laboratory"),
    "city": cut("Paris|Berlin|Madrid|Rome|Vienna|Oslo|Dublin|Prague|Lisbon|Athens|Cairo|Lagos|Lima|Tokyo|Seoul|Boston|"
                "Chicago|Seattle|Denver|Sydney|Geneva|Mumbai|Nairobi",
                "Toronto|Barcelona|Milan|Stockholm|Houston|Bangkok|Istanbul|Glasgow"),
    "field": cut("Marine Biology|Game Theory|Ancient History|Organic Chemistry|Cloud Physics|Music Theory|Solar Energy|"
                 "Plant Genetics|Road Safety|Modern Art|Number Theory|Sleep Medicine|Urban Planning|Family Law",
                 "Computer Vision|Public Health|Quantum Optics|Child Psychology|Tax Law"),
    "unit": cut("Team|Group|Department|Research Team|Research Group", "Unit|Division"),
    "work": cut("study volcanoes|study sleep|study whale songs|study bird migration|study soil chemistry|build robots|"
                "build wooden boats|build small satellites|design chairs|design wind turbines|teach first aid|"
                "teach music theory|repair clocks|repair train engines|grow tomatoes|grow orchids|write travel guides|"
                "write software manuals|translate poems|sell rare books|test batteries|test medical devices|"
                "paint portraits|collect fossils|collect rock samples",
                "study dark matter|study honey bees|develop medicines|develop mobile games|publish city maps|"
                "restore old paintings|breed horses|produce olive oil"),
    "aside": cut("|||with great care, |like many others, |among other duties, |in a small group, ",
                 "||together with two assistants, |on most days, "),
}
REMARKS = cut("It is great fun.|The office is always noisy.|Lunch is at noon.|Everybody likes the coffee.|It rained.|"
              "The building has three floors.|The work is hard but rewarding.|The weather there is mild.",
              "The canteen is excellent.|Parking is impossible.|The train ride takes an hour.")
# facts about somebody (third person) or by somebody (first person); then what they do; then questions and what they ask
THIRD = {
    "facts": cut("{person} works at {institute}, in {city}, in the {team}.|{person} is in the {team} of {institute}.|"
                 "{person} works at {institute} in {city}.|{person} joined the {team} of {institute} in {year}.|"
                 "{person} moved to {city} in {year} to work for {institute}.|{person} belongs to the {team}.|"
                 "{institute}, a company in {city}, hired {person} in {year}.",
                 "{person} found a job at {institute} ({city}) in {year}.|The {team} of {institute} welcomed {person}.|"
                 "Since {year}, {person} has been employed by {institute}, whose headquarters are in {city}.|"
                 "Visitors to {city} can see {institute}, the employer of {person}."),
    "work": cut("At {institute}, {aside}{person} {works}.|There, {aside}{person} {works}.|"
                "{person} {works} at {institute}.|In the {team}, {aside}{person} {works}.",
                "{aside}{person} {works} there.|As part of the job at {institute}, {person} {works}."),
    "questions": (by_kind(institute="Where does {person} work?|Which company does {person} work for?",
                          person="Who works at {institute}?|Who joined {institute}?",
                          city="In which city is {institute}?|Where is {institute}?",
                          year="When did {person} join {institute}?",
                          team="Which team is {person} in?",
                          topic="What does {person} {verb} at {institute}?|What does {person} {verb}?",
                          works="What does {person} do at {institute}?|What does {person} do?"),
                  by_kind(institute="What is the name of the employer of {person}?|Who employs {person}?",
                          person="Who is employed at {institute}?",
                          city="What city is {institute} located in?",
                          year="In what year did {person} start at {institute}?",
                          team="What team does {person} belong to?",
                          topic="What exactly does {person} {verb}?",
                          works="What is it that {person} does at {institute}?")),
}
FIRST_PERSON = {
    "facts": cut("I work at {institute}, in {city}, in the {team}.|I am in the {team} of {institute}.|"
                 "I work at {institute} in {city}.|I joined the {team} of {institute} in {year}.|"
                 "I moved to {city} in {year} to work for {institute}.",
                 "I found a job at {institute} ({city}) in {year}.|The {team} of {institute} welcomed me."),
    "work": cut("At {institute}, {aside}I {work}.|There, {aside}I {work}.|At {institute}, {aside}we {work}.|"
                "In the {team}, {aside}we {work}.|We {work} at {institute}.",
                "As part of my job at {institute}, I {work}.|{aside}we {work} there."),
    "questions": (by_kind(institute="Where do I work?",
                          city="In which city is {institute}?|Where is {institute}?",
                          year="When did I join {institute}?",
                          team="Which team am I in?",
                          topic="What do I {verb} at {institute}?",
                          work="What do I do at {institute}?|What do we do?"),
                  by_kind(institute="Who is my employer?",
                          year="In what year did I start at {institute}?",
                          work="What is it that we do at {institute}?",
                          team="What team do I belong to?")),
}


TOLD = ("person", "institute", "city", "team", "year", "work")
"""Two people in one passage share no first word of these, so that each question has one answer."""


def span_questions(n: int, seed: int = 0, unseen_names: bool = False,
                   unseen_templates: bool = False) -> list[SpanQuestion]:
    """``n`` questions, each with a passage of one to four sentences that holds the answer.

    Some passages tell of somebody else, too, and some have a sentence that answers nothing.
    """
    rng, questions = seeded(n, seed), []
    while len(questions) < n:
        voice = FIRST_PERSON if rng.random() < 0.4 else THIRD
        words = _somebody(rng, unseen_names)
        told = [(rng.choice(voice["facts"][unseen_templates]), words)]
        if rng.random() < 0.8:
            told.append((rng.choice(voice["work"][unseen_templates]), words))
        other = _somebody(rng, unseen_names)
        alike = any(words[slot].split()[0] == other[slot].split()[0] for slot in TOLD)
        if voice is THIRD and rng.random() < 0.4 and not alike:
            told.insert(rng.choice((0, len(told))), (rng.choice(THIRD["facts"][unseen_templates]), other))
        if rng.random() < 0.5:
            told.insert(rng.randint(0, len(told)), (rng.choice(REMARKS[unseen_names]), {}))
        template, kind = rng.choice(voice["questions"][unseen_templates])
        passage, spans = "", {}
        for sentence, facts in told:
            text, places = fill(sentence, facts)
            if facts is words:
                spans = {slot: (len(passage) + a, len(passage) + b) for slot, (a, b) in places.items()} | spans
            passage += text + " "
        if work := spans.get("work", spans.get("works")):                  # the topic is all but the verb
            spans["topic"] = spans["verb"] = work[1] - len(words["topic"]), work[1]
        slots = {slot for _, slot, *_ in Formatter().parse(template) if slot}
        if spans.keys() >= slots | {kind}:                                 # the passage tells it
            questions.append(SpanQuestion(passage.rstrip(), fill(template, words)[0], *spans[kind], kind))
    return questions


def _somebody(rng: Random, unseen: bool) -> dict[str, str]:
    """A person, and where, when and on what the person works: words for the slots of the templates."""
    words = {slot: rng.choice(table[unseen]) for slot, table in NAMES.items()}
    words["team"] = f"{words.pop('field')} {words.pop('unit')}"
    words["verb"], words["topic"] = words["work"].split(" ", 1)
    words["works"] = f"{third_person(words['verb'])} {words['topic']}"
    return words | {"year": str(rng.randint(1970, 2023))}


def third_person(verb: str) -> str:
    """``study`` -> ``studies``, ``teach`` -> ``teaches``, ``grow`` -> ``grows``."""
    return verb[:-1] + "ies" if verb.endswith("y") else verb + ("es" if verb.endswith(("ch", "sh")) else "s")


# --- which words are names, and of what? ------------------------------------------------------------------------

AMBIGUOUS = cut("Paris|Florence|Austin|Jordan|Georgia|Charlotte|Lincoln|Madison|Victoria|Jackson|Chelsea|Carolina|"
                "Dallas|Adelaide|Brooklyn",
                "Sydney|Washington|Savannah|Houston|Devon|Virginia|Israel|Phoenix|Vienna|Lourdes")
"""Each is a person's name and a place's."""
PLAIN = {
    "PER": cut("Anna|Karl|Miguel|Susan|Peter|Laura|Ahmed|Yuki|April|June", "Maria|Ben|Fatima|Oliver|Ivan|May|August"),
    "LOC": cut("Berlin|Japan|Chicago|Spain|Lyon|Cairo|Texas|Oslo", "Rome|Canada|Boston|Peru|Madrid"),
    "ORG": cut("Siemens|Google|Sony|Nestle|Toyota|Boeing|Shell|Nokia", "Intel|Samsung|Honda|Airbus|Pfizer"),
    "DATE": cut("January|February|September|Monday|Friday|April|June", "October|March|Sunday|Tuesday|May|August"),
}
SENTENCES = cut(
    "{PER} lives in {LOC} .|{PER} met {PER} in {LOC} last {DATE} .|{PER} works for {ORG} in {LOC} .|"
    "{ORG} opened an office in {LOC} .|In {DATE} , {PER} moved from {LOC} to {LOC} .|{PER} wrote a letter to {PER} .|"
    "The people of {LOC} love {PER} .|{PER} and {PER} left {ORG} in {DATE} .|{ORG} hired {PER} in {DATE} .|"
    "{LOC} is a city that {PER} visited in {DATE} .|{PER} said that {LOC} is beautiful .|"
    "A train from {LOC} arrived before {PER} did .",
    "{PER} was born near {LOC} .|{PER} , who loves {LOC} , left {ORG} .|It was {PER} who flew to {LOC} in {DATE} .|"
    "Since {DATE} , {ORG} has employed {PER} .|{PER} asked {PER} for a map of {LOC} .")


def tagged_sentences(n: int, seed: int = 0, unseen_names: bool = False,
                     unseen_templates: bool = False) -> list[TaggedSentence]:
    """``n`` sentences; half of the people and places have a name that can be both, and months are people's names."""
    rng, sentences = seeded(n, seed), []
    for _ in range(n):
        words, tags, ambiguous = [], [], []
        for word in rng.choice(SENTENCES[unseen_templates]).split():
            tag = word.strip("{}") if word[0] == "{" else "O"
            if tag != "O":
                table = AMBIGUOUS if tag in ("PER", "LOC") and rng.random() < 0.5 else PLAIN[tag]
                word = rng.choice([name for name in table[unseen_names] if name not in words])
            words.append(word)
            tags.append(TAGS.index(tag))
            ambiguous.append(tag != "O" and sum(word in table[unseen_names]
                                                for table in (AMBIGUOUS, AMBIGUOUS, *PLAIN.values())) > 1)
        sentences.append(TaggedSentence(tuple(words), tuple(tags), tuple(ambiguous)))
    return sentences


# --- words in two senses (written by hand) -----------------------------------------------------------------------

SENSES = {
    "bank": cut("He sat on the bank of the river and fished.|The boat drifted towards the muddy bank.|"
                "Ducks nest on this grassy bank.|After the flood the bank was washed away.|"
                "We walked along the bank until the water was too deep.|From the other bank a heron watched us.|"
                "The canoe lay upside down on the bank.|Willows grow on the bank of the stream.",
                "She opened an account at the bank.|The bank refused to lend him any money.|"
                "He works for a bank in the city.|The bank raised its interest rates again.|"
                "I have to go to the bank and get some cash.|Nobody trusted that bank after the crisis.|"
                "The robbers left the bank with two bags.|My bank charges a fee for every card."),
    "bat": cut("A bat flew out of the dark cave.|The bat hunts insects at night.|"
               "We saw a bat hanging from the roof of the barn.|It finds its way by sound, as a bat does.|"
               "A small bat was asleep under the bridge.|The wings of the bat are made of skin.|"
               "Is a bat a bird?|At dusk the first bat left the church tower.",
               "He swung the bat and missed the ball.|She bought a new wooden bat for the match.|"
               "The player dropped the bat and ran.|His bat broke when he hit the ball.|"
               "You hold the bat with both hands.|Bring your gloves and a bat to the game.|"
               "The coach gave every child a bat.|With this bat she won the championship."),
    "stick": cut("The dog carried a stick in its mouth.|He walked with a stick after the fall.|"
                 "She picked up a stick to feed the fire.|The old man leaned on his stick.|"
                 "They drew a line in the sand with a stick.|A stick floated down the river.|"
                 "Throw the stick, and she will bring it back.|He broke the dry stick over his knee.",
                 "The stamps do not stick to the paper.|We should stick to our plan.|"
                 "Wet leaves stick to your shoes.|You must stick to the rules.|"
                 "These labels stick to almost everything.|Snow will not stick on a warm road.|"
                 "Stick the photo on the first page.|My shirt began to stick to my back."),
}
"""A word, and sentences in which it stands once: those with its first sense, and those with its second."""
