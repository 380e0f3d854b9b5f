package bugreport

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// redacted replaces a secret.
const redacted = "[redacted]"

const (
	// shortestSecret is the length from which on a value that is dropped of an object is searched in texts:
	// shorter ones, such as "true" and "8080", are everywhere.
	shortestSecret = 8
	// maxSecrets limits how many there are.
	maxSecrets = 20_000
)

// redactor removes secrets from texts: what looks like one, and the values that it has learned.
type redactor struct {
	values   map[string]bool
	replacer *strings.Replacer // of values, nil if it must be built
}

func newRedactor() *redactor { return &redactor{values: map[string]bool{}} }

// learn adds a value that may be a secret, and each of its lines, as texts may quote a part.
func (r *redactor) learn(value string) {
	for _, v := range append(strings.Split(value, "\n"), value) {
		if v = strings.TrimSpace(v); len(v) < shortestSecret || v == redacted || len(r.values) >= maxSecrets {
			continue
		}
		r.values[v] = true
		r.replacer = nil
	}
}

// forms returns how a value may be written in a text.
func forms(value string) []string {
	all := []string{value, base64.StdEncoding.EncodeToString([]byte(value)), url.QueryEscape(value), url.PathEscape(value)}
	quoted := strconv.Quote(value)
	all = append(all, quoted[1:len(quoted)-1])
	if text, err := json.Marshal(value); err == nil {
		all = append(all, string(text[1:len(text)-1]))
	}
	return all
}

// text returns a text without secrets.
func (r *redactor) text(s string) string {
	for _, p := range patterns {
		if !strings.Contains(s, p.hint) {
			continue
		}
		s = p.find.ReplaceAllString(s, p.with)
	}
	s = query.ReplaceAllStringFunc(s, redactQuery)
	if r.replacer == nil {
		var all []string
		for v := range r.values {
			all = append(all, forms(v)...)
		}
		// Of two values that begin alike, the longer one.
		slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
		var pairs []string
		for _, form := range slices.Compact(all) {
			pairs = append(pairs, form, redacted)
		}
		r.replacer = strings.NewReplacer(pairs...)
	}
	return r.replacer.Replace(s)
}

const (
	// secretName ends the name of a variable, a field or an option that has a secret.
	secretName = `(?i:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|client-key-data|credentials?|auth)`
	// value is quoted or a word.
	value = `(?:\\?"(?:[^"\\]|\\[^"])*\\?"|'[^'\n]*'|[^\s,;&"'\]})]+)`
	// space is between lines, also in a quoted text.
	space = `(?:\s|\\[nr])`
)

// patterns find what is a secret by its form or by its name. Those with a hint are tried in texts that have it.
var patterns = []struct {
	hint string
	find *regexp.Regexp
	with string
}{
	{"PRIVATE KEY", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?:` + space + `*[A-Za-z0-9+/]{16,}={0,2})*`), redacted},
	{"PRIVATE KEY", regexp.MustCompile(`(?:[A-Za-z0-9+/=]{16,}` + space + `+)*[A-Za-z0-9+/=]*` + space + `*-----END [A-Z ]*PRIVATE KEY-----`), redacted}, // its beginning was cut
	{"LS0tLS1CRUdJTi", regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=]*`), redacted},                                                                    // PEM in base64
	{"eyJ", regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`), redacted},                                                   // a JWT
	{"", regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}`), redacted},
	{"", regexp.MustCompile(`((?i:\bauthorization|\bcookie)[\\"']*\s*[:=]\s*[\\"'\[]*)[^\\"'\]\r\n]+`), "${1}" + redacted},
	{"", regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "${1} " + redacted},
	{"://", regexp.MustCompile(`(://)[^\s/@"'<>]+@`), "${1}" + redacted + "@"},
	{"=", regexp.MustCompile(`(` + secretName + `\\?["']?=)` + value), "${1}" + redacted},
	{":", regexp.MustCompile(`(` + secretName + `\\?["']\s*:\s*)` + value), "${1}" + redacted}, // JSON
	{":", regexp.MustCompile(`(?m)(^\s*(?:- )?[\w.-]*` + secretName + `:[ \t]+)` + value), "${1}" + redacted},
	// Output of probes and hooks is text of the pod's programs.
	{"output=", regexp.MustCompile(`(\boutput=)"(?:[^"\\]|\\.)*"`), "${1}" + redacted},
	{"output=", regexp.MustCompile(`(?s)(\boutput=)<\n.*?\n >`), "${1}" + redacted},
	{" probe ", regexp.MustCompile(`((?:Liveness|Readiness|Startup) probe (?:failed|errored)[^:]*: )(?:[^"\\\n]|\\.)+`), "${1}" + redacted},
}

var query = regexp.MustCompile(`[?&][\w.~%-]+=[^\s"'&<>]+`)

// harmless are the parameters of URLs whose values are kept.
var harmless = []string{"allowWatchBookmarks", "fieldSelector", "labelSelector", "limit", "output", "resourceVersion", "sendInitialEvents", "timeout", "timeoutSeconds", "verbose", "watch"}

func redactQuery(parameter string) string {
	name, _, _ := strings.Cut(parameter[1:], "=")
	if slices.Contains(harmless, name) {
		return parameter
	}
	return parameter[:1] + name + "=" + redacted
}
