package config

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// problem is an invalid field whose origin is not known yet. A flag that sets no field is named with
// its dashes.
type problem struct {
	field   string
	message string
	class   problemClass
}

// problemClass says whether a kubelet can start in spite of a problem.
type problemClass int

const (
	invalid        problemClass = iota // it cannot
	unknownField                       // it can, without the field
	duplicateField                     // it can, with the last value
	ignoredValue                       // it can, without the value
)

// SettingError is an error about the value of one setting, for packages that know more about the value
// than this one. Config.Locate adds where it is set.
type SettingError struct {
	Field   string // path in the configuration, or the flag with its dashes
	Message string
}

func (e *SettingError) Error() string { return e.Field + ": " + e.Message }

// Invalid returns a SettingError.
func Invalid(field, format string, args ...any) error {
	return &SettingError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// Locate replaces the SettingErrors of err by FieldErrors, which say where the value is set. It keeps
// other errors.
func (c *Config) Locate(err error) error {
	var found Errors
	var others []error
	for _, e := range flatten(err) {
		var setting *SettingError
		if errors.As(e, &setting) {
			found = append(found, locate([]problem{{field: setting.Field, message: setting.Message}}, c.Origins)...)
		} else {
			others = append(others, e)
		}
	}
	if len(found) > 0 {
		others = append(others, found.sorted())
	}
	return errors.Join(others...)
}

// flatten returns the errors that errors.Join has joined.
func flatten(err error) (all []error) {
	// An error that wraps several says more than these.
	if joined, ok := err.(interface{ Unwrap() []error }); ok && errors.Join(joined.Unwrap()...).Error() == err.Error() {
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// FieldError is an invalid value with its origin.
type FieldError struct {
	Origin  Origin
	Field   string // path in the configuration, empty for a whole file or a flag
	Message string
	class   problemClass
}

// Error begins with the origin, so that editors can jump to it.
func (e *FieldError) Error() string {
	parts := []string{e.Origin.String()}
	if e.Field != "" {
		parts = append(parts, e.Field)
	}
	return strings.Join(append(parts, e.Message), ": ")
}

// Errors are all invalid values of the configuration in the order of files and lines.
type Errors []*FieldError

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.As find single errors.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, err := range e {
		all[i] = err
	}
	return all
}

// locate adds the origin of its field to each problem.
func locate(problems []problem, origins Origins) (errs Errors) {
	for _, p := range problems {
		if flag, ok := strings.CutPrefix(p.field, "--"); ok {
			errs = append(errs, &FieldError{Origin: Origin{Flag: flag}, Message: p.message, class: p.class})
			continue
		}
		errs = append(errs, &FieldError{Origin: origins.Of(p.field), Field: p.field, Message: p.message, class: p.class})
	}
	return errs
}

// sorted orders the errors by file and line, with flags and defaults first, and removes duplicates.
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

// DidYouMean suggests the most similar known word, if one is similar enough to be a typo.
func DidYouMean(word string, known iter.Seq[string]) string {
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
