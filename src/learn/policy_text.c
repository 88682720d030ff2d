#include "learn/policy_text.h"

#include <stdarg.h>
#include <string.h>

#include "base/bits.h"
#include "base/fmt.h"
#include "config/values.h"

#define FIRST_LINE "hakmem-policy 1"

/* The most that is read, and so written. */
static const struct policy_evidence evidence_most = {.epochs = UINT32_MAX, .seconds = UINT32_MAX, .saved = 1000000};

/* A part being read, or none. */
struct part {
    bool is_open;
    bool has_key;   /* its second line was there */
    bool is_ours;
    bool same_path;
    size_t begin;
    struct policy_evidence evidence;
};

struct reader {
    const char *text;
    size_t length;
    const struct policy_key *key;
    struct policy_found *found;
    bool apply;
    struct out *stays; /* where lines are written that stay, or NULL */
    bool has_begun; /* the first line was there */
    struct part part;
};

/* ---- Words. */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct policy_word policy_next_word(struct policy_line *line)
{
    while (line->at < line->end && is_blank(*line->at))
        line->at++;
    struct policy_word word = {line->at, line->at};
    while (word.end < line->end && !is_blank(*word.end))
        word.end++;
    line->at = word.end;
    return word;
}

static bool word_is(struct policy_word word, const char *text)
{
    return value_is(word.at, (size_t)(word.end - word.at), text);
}

bool policy_line_is_wrong(const struct policy_line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fmt_vprint(line->found->what, sizeof line->found->what, format, args);
    va_end(args);
    line->found->is = POLICY_DAMAGED;
    return false;
}

bool policy_next_number(struct policy_line *line, const char *name, uint64_t most, uint64_t *out)
{
    struct policy_word word = policy_next_word(line);
    if (!value_number(word.at, word.end, most, out))
        return policy_line_is_wrong(line, "%s needs a number, up to %lu", name, most);
    return true;
}

/* ---- The lines of a part that every text has. */

static bool is_path(const struct policy_line *line, const char *path)
{
    size_t length = strlen(path);
    if ((size_t)(line->end - line->at) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (line->at[i] != path[i] && line->at[i] != '?') /* what is no text is written so */
            return false;
    return length > 0;
}

static bool read_program(struct reader *reader, struct policy_line *line, size_t begin)
{
    struct part *part = &reader->part;
    if (part->is_open)
        return policy_line_is_wrong(line, "the program before has no end");
    while (line->at < line->end && is_blank(*line->at))
        line->at++;
    if (line->at == line->end || *line->at != '/')
        return policy_line_is_wrong(line, "program needs an absolute path");
    *part = (struct part){.is_open = true, .same_path = is_path(line, reader->key->path), .begin = begin};
    line->at = line->end;
    return true;
}

static bool read_build_id(struct reader *reader, struct policy_line *line)
{
    static const char digits[] = "0123456789abcdef";
    struct policy_word word = policy_next_word(line);
    size_t length = (size_t)(word.end - word.at);
    for (const char *digit = word.at; digit < word.end; digit++)
        if (memchr(digits, *digit, sizeof digits - 1) == NULL)
            length = 0;
    if (length == 0)
        return policy_line_is_wrong(line, "build-id needs hexadecimal digits");
    reader->part.has_key = true;
    reader->part.is_ours = word_is(word, reader->key->build_id);
    return true;
}

static bool read_size(struct reader *reader, struct policy_line *line)
{
    uint64_t bytes;
    if (!policy_next_number(line, "size", UINT64_MAX, &bytes))
        return false;
    reader->part.has_key = true;
    reader->part.is_ours = reader->part.same_path && reader->key->build_id[0] == '\0' && bytes == reader->key->bytes;
    return true;
}

/* Of two parts of the program itself there is one too many. One of another build of it counts only if there is none of this. */
static bool read_end(struct reader *reader, struct policy_line *line, size_t end)
{
    struct part *part = &reader->part;
    struct policy_found *found = reader->found;
    if (part->is_ours && found->is == POLICY_THERE)
        return policy_line_is_wrong(line, "the same program twice");
    if (part->is_ours || (part->same_path && found->is == POLICY_NOT_THERE)) {
        found->is = part->is_ours ? POLICY_THERE : POLICY_OF_OTHER_BUILD;
        found->begin = part->begin;
        found->end = end;
        found->evidence = part->evidence;
    }
    *part = (struct part){0};
    return true;
}

/* ---- Lines. */

static void write_if_it_stays(struct reader *reader, const struct policy_section *section, struct policy_word word,
                              const struct policy_line *line)
{
    if (reader->stays == NULL || section->stays == NULL || !section->stays(*line))
        return;
    out_write(reader->stays, word.at, (size_t)(line->end - word.at));
    out_print(reader->stays, "\n");
}

static bool read_section(struct reader *reader, struct policy_word word, struct policy_line *line)
{
    for (const struct policy_section *section = policy_sections; section->word != NULL; section++)
        if (word_is(word, section->word)) {
            write_if_it_stays(reader, section, word, line);
            return section->read(line, reader->apply);
        }
    return policy_line_is_wrong(line, "legal are program, build-id, size, epochs, seconds, saved, knob, class, site, end and comments");
}

static bool read_in_part(struct reader *reader, struct policy_word word, struct policy_line *line, size_t end)
{
    struct policy_evidence *evidence = &reader->part.evidence;
    if (!reader->part.is_open)
        return policy_line_is_wrong(line, "a program comes first");
    bool is_key = word_is(word, "build-id") || word_is(word, "size");
    if (is_key && reader->part.has_key)
        return policy_line_is_wrong(line, "a program has one build-id or size");
    if (is_key)
        return *word.at == 'b' ? read_build_id(reader, line) : read_size(reader, line);
    if (!reader->part.has_key)
        return policy_line_is_wrong(line, "behind program comes build-id or size");
    if (word_is(word, "epochs"))
        return policy_next_number(line, "epochs", evidence_most.epochs, &evidence->epochs);
    if (word_is(word, "seconds"))
        return policy_next_number(line, "seconds", evidence_most.seconds, &evidence->seconds);
    if (word_is(word, "saved"))
        return policy_next_number(line, "saved", evidence_most.saved, &evidence->saved);
    if (word_is(word, "end"))
        return read_end(reader, line, end);
    return read_section(reader, word, line);
}

static bool read_first(struct reader *reader, struct policy_line *line)
{
    if (!value_is(line->at, (size_t)(line->end - line->at), FIRST_LINE))
        return policy_line_is_wrong(line, "it does not begin with \"" FIRST_LINE "\"");
    reader->has_begun = true;
    line->at = line->end;
    return true;
}

/* Where the comment begins, or else the line ends, without the blanks before. */
static const char *end_of_words(const char *at, const char *end)
{
    const char *comment = at;
    while (comment < end && !(*comment == '#' && (comment == at || is_blank(comment[-1]))))
        comment++;
    while (comment > at && is_blank(comment[-1]))
        comment--;
    return comment;
}

static bool read_line(struct reader *reader, const char *at, const char *end)
{
    struct policy_line line = {at, end, reader->found};
    struct policy_word word = policy_next_word(&line);
    size_t after = (size_t)(end - reader->text) + (end < reader->text + reader->length);
    if (word_is(word, "program") && reader->has_begun)
        return read_program(reader, &line, (size_t)(at - reader->text));
    line.end = end_of_words(at, end);
    if (word.at >= line.end)
        return true;
    if (!reader->has_begun) {
        line.at = at;
        return read_first(reader, &line);
    }
    if (!read_in_part(reader, word, &line, after))
        return false;
    struct policy_word more = policy_next_word(&line);
    return more.at == more.end || policy_line_is_wrong(&line, "there is more behind it than belongs there");
}

static bool read_lines(struct reader *reader)
{
    const char *text_end = reader->text + reader->length;
    for (const char *at = reader->text; at < text_end;) {
        const char *newline = memchr(at, '\n', (size_t)(text_end - at));
        const char *end = newline != NULL ? newline : text_end;
        reader->found->line++;
        if (!read_line(reader, at, end))
            return false;
        at = newline != NULL ? newline + 1 : text_end;
    }
    struct policy_line last = {text_end, text_end, reader->found};
    if (reader->found->line == 0)
        reader->found->line = 1;
    if (!reader->has_begun)
        return policy_line_is_wrong(&last, "it is empty");
    return !reader->part.is_open || policy_line_is_wrong(&last, "it is cut off: the last program has no end");
}

void policy_text_read(const char *text, size_t length, const struct policy_key *key, struct policy_found *found)
{
    struct reader reader = {.text = text, .length = length, .key = key, .found = found};
    *found = (struct policy_found){.is = POLICY_NOT_THERE, .begin = length, .end = length};
    (void)read_lines(&reader);
}

/* A part that was found, and so is sound. */
static void read_again(const char *text, const struct policy_found *found, bool apply, struct out *stays)
{
    struct policy_found again = {0};
    struct policy_key nobody = {"", "", 0};
    struct reader reader = {.text = text + found->begin,
                            .length = found->end - found->begin,
                            .key = &nobody,
                            .found = &again,
                            .apply = apply,
                            .stays = stays,
                            .has_begun = true};
    (void)read_lines(&reader);
}

void policy_text_apply(const char *text, const struct policy_found *found)
{
    read_again(text, found, true, NULL);
}

/* ---- Writing. */

void policy_text_begin(struct out *out)
{
    out_print(out, FIRST_LINE "\n# What hakmem has learned (docs/learning.md). May be edited, merged and checked in.\n");
}

static void write_path(struct out *out, const char *path)
{
    for (; *path != '\0'; path++)
        out_print(out, "%c", (unsigned char)*path < ' ' || *path == 127 ? '?' : *path);
}

void policy_text_write(struct out *out, const struct policy_key *key, const struct policy_evidence *evidence, const char *text,
                       const struct policy_found *before)
{
    out_print(out, "program ");
    write_path(out, key->path);
    if (key->build_id[0] != '\0')
        out_print(out, "\nbuild-id %s\n", key->build_id);
    else
        out_print(out, "\nsize %lu\n", key->bytes);
    out_print(out, "epochs %lu\nseconds %lu\nsaved %lu # millionths of the cost\n",
              min_size(evidence->epochs, evidence_most.epochs), min_size(evidence->seconds, evidence_most.seconds),
              min_size(evidence->saved, evidence_most.saved));
    for (const struct policy_section *section = policy_sections; section->word != NULL; section++)
        section->write(out);
    if (before != NULL)
        read_again(text, before, false, out);
    out_print(out, "end\n");
}
