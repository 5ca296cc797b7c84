"""Texts of other scripts, and of characters that are hardly text, through `uetrust score`.

Every value is that of code written here, or missing where nothing is compared.
"""

import json
import math
from itertools import product

from tests.faults.harness import fault

METHODS = "lex_sim lex_sim_rouge_1 lex_sim_bleu bleu_var deg_mat_jaccard eigv_jaccard".split()
METRICS = "rouge_l rouge_1 bleu chrf ter token_f1_true rouge_l_true".split()
ENGLISH = dict(
    id="english",
    hypothesis="The council opened a bridge",
    source="The council opened a new bridge",
    reference="A bridge was opened",
    samples=["The council opened a bridge", "A bridge was opened", "Nobody came"],
)


def write(folder, first, second, third):
    "One text of each kind, one whose texts are all equal, and an English one that always has values"
    unlike = dict(id="unlike", hypothesis=first, source=second, reference=second)
    alike = dict(id="alike", hypothesis=first, source=first, reference=first)
    rows = [ENGLISH, unlike | dict(samples=[first, second, third]), alike | dict(samples=[first] * 3)]
    (folder / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["score", "mine.jsonl", "--method", *METHODS, "--metric", *METRICS, "--out", "scores.csv"]


def rouge_words(text):
    "Runs of a to z and digits, one character at a time; none in a text of other letters"
    kept = "".join(c if c in "abcdefghijklmnopqrstuvwxyz0123456789" else " " for c in text.lower())
    others = [c for c, own in zip(text.lower(), kept) if own == " " and c.isalnum()]
    return kept.split() if len("".join(kept.split())) >= len(others) else []


def subsequence(first, second):
    table = {}
    for i, j in product(range(len(first) + 1), range(len(second) + 1)):
        near = max(table.get((i - 1, j), 0), table.get((i, j - 1), 0))
        same = i and j and first[i - 1] == second[j - 1]
        table[i, j] = table[i - 1, j - 1] + 1 if same else near
    return table[len(first), len(second)]


def seen(text):
    "Words between spaces; none where no character can be seen"
    return text.split() if any(c.isprintable() and not c.isspace() for c in text) else []


def pairs(texts, value):
    return [value(a, b) for i, a in enumerate(texts) for j, b in enumerate(texts) if i != j]


def f1(common, first, second):
    return 2 * common / (len(first) + len(second)) if first + second else math.nan


def shared(first, second):
    return sum(min(first.count(word), second.count(word)) for word in set(first))


def mean_or_nan(values, words):
    return math.nan if sum(not own for own in words) > 1 else sum(values) / len(values)


def jaccard(first, second):
    return len(set(first) & set(second)) / max(len(set(first) | set(second)), 1)


def expected(row):
    "What each score must be; a score whose value is not known here is left out"
    from nltk.stem.porter import PorterStemmer

    def stems(text):
        return [PorterStemmer().stem(word) if len(word) > 3 else word for word in rouge_words(text)]

    words, spaced = [stems(t) for t in row["samples"]], [seen(t.lower()) for t in row["samples"]]
    own, other = stems(row["hypothesis"]), stems(row["reference"])
    found = dict(
        lex_sim=mean_or_nan(pairs(words, lambda a, b: -f1(subsequence(a, b), a, b)), words),
        lex_sim_rouge_1=mean_or_nan(pairs(words, lambda a, b: -f1(shared(a, b), a, b)), words),
        deg_mat_jaccard=mean_or_nan(
            [1 - jaccard(a, b) if i != j else 0 for (i, a), (j, b) in product(enumerate(spaced), repeat=2)],
            spaced,
        ),
        rouge_l=f1(subsequence(own, other), own, other) if other else math.nan,
        rouge_1=f1(shared(own, other), own, other) if other else math.nan,
    )
    if row["id"] == "alike" and spaced[0]:
        found |= dict(bleu_var=0, eigv_jaccard=1, lex_sim_bleu=-1, chrf=100, ter=0)
    if not spaced[0] and not spaced[1]:
        found |= dict(bleu_var=math.nan, eigv_jaccard=math.nan, lex_sim_bleu=math.nan)
    return found


def same(found, wanted):
    return math.isnan(found) if math.isnan(wanted) else math.isclose(found, wanted, abs_tol=1e-9)


def every_value_is_known(folder, outcome):
    import pandas as pd

    scores = pd.read_csv(folder / "scores.csv", index_col="id")
    assert scores.loc["english"].notna().all(), "a good text keeps its values"
    for row in map(json.loads, (folder / "mine.jsonl").read_text().splitlines()):
        wrong = {
            name: (scores.at[row["id"], name], wanted)
            for name, wanted in expected(row).items()
            if not same(scores.at[row["id"], name], wanted)
        }
        assert not wrong, (row["id"], wrong)
    certain = scores.loc["unlike", ["lex_sim", "lex_sim_rouge_1", "lex_sim_bleu"]]
    assert not (certain == -1).any(), "unlike texts are not certain"


SCRIPTS = dict(
    chinese=("市政府在河上开通了新桥。", "警方逮捕了两名嫌疑人。", "明天有雨。"),
    japanese=("市は新しい橋を開通した。", "カラスが鳴いた。", "明日は雨です。"),
    korean=("시는 새 다리를 열었다.", "경찰이 두 명을 체포했다.", "내일 비가 온다."),
    hindi=("शहर ने नया पुल खोला।", "पुलिस ने दो लोगों को पकड़ा।", "कल बारिश होगी।"),
    bengali=("শহর একটি নতুন সেতু খুলেছে।", "পুলিশ দুজনকে ধরেছে।", "কাল বৃষ্টি হবে।"),
    tamil=("நகரம் புதிய பாலத்தைத் திறந்தது.", "காவல்துறை இருவரைப் பிடித்தது.", "நாளை மழை."),
    thai=("เมืองเปิดสะพานใหม่", "ตำรวจจับสองคน", "พรุ่งนี้ฝนตก"),
    lao=("ເມືອງເປີດຂົວໃໝ່", "ຕຳຫຼວດຈັບສອງຄົນ", "ມື້ອື່ນຝົນຕົກ"),
    khmer=("ទីក្រុងបើកស្ពានថ្មី។", "ប៉ូលិសចាប់ពីរនាក់។", "ស្អែកភ្លៀង។"),
    burmese=("မြို့သည် တံတားအသစ် ဖွင့်သည်။", "ရဲက နှစ်ဦးဖမ်းသည်။", "မနက်ဖြန် မိုးရွာမည်။"),
    tibetan=("གྲོང་ཁྱེར་གྱིས་ཟམ་པ་གསར་པ།", "ཉེན་རྟོག་པས་མི་གཉིས་བཟུང་།", "སང་ཉིན་ཆར་པ།"),
    arabic=("افتتحت المدينة جسرا جديدا.", "هل اعتقلت الشرطة رجلين؟", "غدا مطر."),
    persian=("شهر پل تازه‌ای باز کرد.", "پلیس دو نفر را گرفت.", "فردا باران می‌بارد."),
    urdu=("شہر نے نیا پل کھولا۔", "پولیس نے دو کو پکڑا۔", "کل بارش ہوگی۔"),
    hebrew=("העיר פתחה גשר חדש.", "המשטרה עצרה שני גברים.", "מחר גשם."),
    russian=("Город открыл новый мост.", "Полиция задержала двух мужчин.", "Завтра дождь."),
    greek=("Η πόλη άνοιξε γέφυρα.", "Η αστυνομία συνέλαβε δύο.", "Αύριο βρέχει."),
    armenian=("Քաղաքը նոր կամուրջ բացեց։", "Ոստիկանությունը երկուսին բռնեց։", "Վաղը անձրև։"),
    georgian=("ქალაქმა ახალი ხიდი გახსნა.", "პოლიციამ ორი დააკავა.", "ხვალ წვიმაა."),
    amharic=("ከተማዋ አዲስ ድልድይ ከፈተች።", "ፖሊስ ሁለት ሰዎችን ያዘ።", "ነገ ዝናብ።"),
    cherokee=("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "ᎠᏂᏴᏫᏯ ᎤᎾᎵᎮᎵᏍᏗ", "ᎤᎦᏙᏅ"),
    german=("Müßiggänger öffnen Türen.", "Polizei faßt zwei Männer.", "Morgen Regen."),
    vietnamese=("Thành phố mở cầu mới.", "Cảnh sát bắt hai người.", "Ngày mai trời mưa."),
)
FEW_WORDS = dict(
    chinese_with_one_english_name=("市政府批准 GPU4。", "警方逮捕了两名。", "GPU4 明天。"),
    russian_with_numbers=("Мост стоит 300 рублей.", "Дождь в 2024 году.", "Полиция."),
    hebrew_with_a_latin_name=("העיר London פתחה.", "London גשר.", "מחר."),
    hindi_with_latin_digits=("पुल 12 है।", "पुल 13 है।", "नहीं।"),
    arabic_digits=("٣٤٥", "٦٧٨", "١٢"),
    full_width_latin=("ｂｒｉｄｇｅ ｏｐｅｎ", "ｒａｉｎ", "ｎｏｂｏｄｙ"),
    mathematical_letters=("𝐛𝐫𝐢𝐝𝐠𝐞 𝐨𝐩𝐞𝐧", "𝐫𝐚𝐢𝐧 𝐧𝐨𝐰", "𝐧𝐨"),
    roman_numerals=("Ⅷ Ⅸ", "Ⅹ Ⅺ", "Ⅻ"),
    superscripts=("x² y³", "z⁴", "⁵"),
    ligatures=("oﬃce ﬁre", "ﬂood", "ﬆop"),
    turkish_dotted_capital=("İSTANBUL IŞIK", "ILIK SU", "ĞÜŞ"),
    decomposed_accents=("cafe\u0301 re\u0301sume\u0301", "na\u0131\u0308ve", "u\u0308ber"),
)
NO_WORDS = dict(
    emoji=("😀😀", "🌉 🚧", "🌧"),
    families_of_emoji=("👨‍👩‍👧‍👦", "👩🏽‍🚒", "🏳️‍🌈"),
    hearts_with_a_variation=("❤️ ❤️", "✂️", "☎️"),
    flags=("🇳🇱🇩🇪", "🇫🇷", "🇯🇵 🇰🇷"),
    marks_of_all_kinds=("...!?", "—–-", "«»"),
    box_drawing=("┌──┐", "│  │", "└──┘"),
    mathematics=("∀∃∈", "∑∏√", "≤≥≠"),
    currencies=("€€", "₹ ₩", "¥"),
    braille=("⠃⠗⠊⠙⠛⠑", "⠗⠁⠊⠝", "⠝⠕"),
    combining_marks_alone=("\u0301\u0308", "\u0327", "\u20dd"),
    zero_width_characters=("\u200b\u200b", "\u200d", "\u2060"),
    directions_alone=("\u202e\u202c", "\u2067\u2069", "\u200f"),
    byte_order_mark=("\ufeff", "\ufeff\ufeff", "\u00ad"),
    spaces_of_all_kinds=("\u3000\u3000", "\u2003", "\u00a0"),
    line_separators=("\u2028", "\u2029", "\u0085"),
    private_use=("\ue000\ue001", "\uf8ff", "\ue123"),
    not_yet_assigned=("\u0378", "\u0379\u0379", "\u0380"),
    no_texts=("", "", ""),
)
TRICKY = dict(
    right_to_left_override=("\u202eegdirb eht denepo", "the rain \u2067fell\u2069", "nobody"),
    zalgo=("b\u0334\u0301r\u0337i\u0327d\u0335g\u0336e\u0338", "r\u0334a\u0335i\u0336n", "n\u0337o"),
    bom_before_a_word=("\ufeffbridge opened", "bridge closed", "rain"),
    zero_width_space_inside=("bri\u200bdge", "bridge", "br\u200didge"),
    soft_hyphens=("bri\u00addge opened", "bridge opened", "rain"),
    cyrillic_letters_that_look_latin=("brіdgе ореnеd", "bridge opened", "rain"),
    english_with_emoji=("The bridge opened 🌉", "🌉 The bridge opened", "Rain 🌧"),
    spaces_that_do_not_break=("bridge\u00a0opened", "bridge opened", "rain"),
    one_empty_sample=("The bridge opened", "", "Rain fell"),
    one_sample_without_words=("The bridge opened", "…", "Rain fell"),
    underscores=("bridge_opened_now", "bridge opened now", "rain_fell"),
    apostrophes_of_two_kinds=("don't stop", "don’t stop", "rain"),
)


@fault("right", cases=SCRIPTS, check=every_value_is_known, limit=60.0)
def script(folder, texts):
    return write(folder, *texts)


@fault("right", cases=FEW_WORDS, check=every_value_is_known, limit=60.0)
def few_words_that_rouge_reads(folder, texts):
    return write(folder, *texts)


@fault("right", cases=NO_WORDS, check=every_value_is_known, limit=60.0)
def no_word_at_all(folder, texts):
    return write(folder, *texts)


@fault("right", cases=TRICKY, check=every_value_is_known, limit=60.0)
def tricky_characters(folder, texts):
    return write(folder, *texts)
