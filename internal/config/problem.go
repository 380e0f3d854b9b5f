package config

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// problem is something wrong with one field, not yet knowing where the field was set. A
// flag that is no field of the configuration is named with its dashes.
type problem struct {
	field string
	what  string
}

// FieldError says what is wrong with one value, and where the value came from.
type FieldError struct {
	Origin Origin
	Field  string // path in the configuration, empty when the whole file or flag is meant
	What   string
}

// Error begins with the place, so that editors and people can jump to it.
func (e *FieldError) Error() string {
	parts := []string{e.Origin.String()}
	if e.Field != "" {
		parts = append(parts, e.Field)
	}
	return strings.Join(append(parts, e.What), ": ")
}

// Errors are all that is wrong with the configuration, in the order of the files' lines.
type Errors []*FieldError

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the single errors.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, err := range e {
		all[i] = err
	}
	return all
}

// locate gives each problem the place its field was last set.
func locate(problems []problem, origins Origins) (errs Errors) {
	for _, p := range problems {
		if flag, ok := strings.CutPrefix(p.field, "--"); ok {
			errs = append(errs, &FieldError{Origin: Origin{Flag: flag}, What: p.what})
			continue
		}
		errs = append(errs, &FieldError{Origin: origins.Of(p.field), Field: p.field, What: p.what})
	}
	return errs
}

// sorted orders the errors by file and line, flags and defaults first, each error once.
func (e Errors) sorted() Errors {
	errs := slices.Clone(e)
	slices.SortStableFunc(errs, func(a, b *FieldError) int {
		return cmp.Or(
			cmp.Compare(a.Origin.File, b.Origin.File),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Field, b.Field),
		)
	})
	return slices.CompactFunc(errs, func(a, b *FieldError) bool { return *a == *b })
}

// didYouMean names the nearest of the known words, when one is near enough to be a slip.
func didYouMean(word string, known iter.Seq[string]) string {
	best, distance := "", max(2, len(word)/4)+1
	for other := range known {
		d := editDistance(strings.ToLower(word), strings.ToLower(other))
		if d < distance || d == distance && best != "" && other < best {
			best, distance = other, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// editDistance is the Levenshtein distance in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, substitute)
		}
	}
	return row[len(b)]
}
