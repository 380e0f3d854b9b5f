package runtime

import "strings"

// EnvVar is one resolved environment variable.
type EnvVar struct {
	Name  string
	Value string
}

// Expand replaces every $(NAME) in text by the value that lookup finds for NAME, and leaves it
// unchanged where lookup finds none. $$ stands for $, so $$(NAME) is never a reference.
func Expand(text string, lookup func(name string) (value string, ok bool)) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "("):
			name, after, closed := strings.Cut(rest[1:], ")")
			if !closed {
				// A reference without its closing bracket is plain text.
				b.WriteString("$(")
				text = rest[1:]
				continue
			}
			if value, ok := lookup(name); ok {
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
func expandAll(texts []string, envs []EnvVar) []string {
	values := make(map[string]string, len(envs))
	for _, e := range envs {
		values[e.Name] = e.Value
	}
	var all []string
	for _, text := range texts {
		all = append(all, Expand(text, lookupIn(values)))
	}
	return all
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
