package runtime

import (
	"fmt"
	"os"
	"strings"
)

// The kernel's limits of execve. A value or a list beyond them cannot be passed to a program, so it is
// not expanded further: references can double the text with each variable.
var (
	maxString = 32 * os.Getpagesize() // of one argument or variable
	maxTotal  = 6 << 20               // of all of them: three quarters of the default stack
)

// tooLongError reports an expanded text beyond the kernel's limit.
type tooLongError struct{ limit int }

func (e tooLongError) Error() string {
	return fmt.Sprintf("its expanded value is too long, the kernel accepts at most %d bytes", e.limit)
}

// EnvVar is one resolved environment variable.
type EnvVar struct {
	Name  string
	Value string
}

// Expand replaces every $(NAME) in text by the value that lookup finds for NAME, and leaves it
// unchanged where lookup finds none. $$ stands for $, so $$(NAME) is never a reference. It fails if
// references make the text longer than the kernel accepts.
func Expand(text string, lookup func(name string) (value string, ok bool)) (string, error) {
	if !strings.Contains(text, "$") {
		return text, nil
	}
	limit := max(len(text), maxString)
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "("):
			name, after, closed := strings.Cut(rest[1:], ")")
			if !closed {
				// A reference without its closing bracket is plain text, and so are all that follow.
				b.WriteString("$" + strings.ReplaceAll(rest, "$$", "$"))
				return b.String(), nil
			}
			if value, ok := lookup(name); ok {
				if b.Len()+len(value) > limit {
					return "", tooLongError{limit}
				}
				b.WriteString(value)
			} else {
				b.WriteString("$(" + name + ")")
			}
			text = after
		default:
			b.WriteByte('$')
			text = rest
		}
	}
}

// expandAll expands references to envs in each of texts. Of several variables with the same
// name the last one is used.
func expandAll(texts []string, envs []EnvVar) ([]string, error) {
	values := make(map[string]string, len(envs))
	for _, e := range envs {
		values[e.Name] = e.Value
	}
	var all []string
	total := 0
	for i, text := range texts {
		expanded, err := Expand(text, lookupIn(values))
		if total += len(expanded); err == nil && total > maxTotal && len(expanded) > len(text) {
			err = tooLongError{maxTotal}
		}
		if err != nil {
			return nil, fmt.Errorf("expand argument %d: %w", i, err)
		}
		all = append(all, expanded)
	}
	return all, nil
}

// lookupIn finds names in the first of maps that has them.
func lookupIn(maps ...map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, m := range maps {
			if value, ok := m[name]; ok {
				return value, true
			}
		}
		return "", false
	}
}
