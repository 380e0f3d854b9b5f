package server

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxQueriedServices = 4
	maxServiceName     = 256
	maxTailLines       = 100_000
)

// unsafeServiceChars matches characters that no name of a service contains and that a shell or an
// option parser might interpret.
var unsafeServiceChars = regexp.MustCompile(`[^a-zA-Z\-_.:0-9@]`)

// nodeLogQuery selects the logs of system services, or one log file.
type nodeLogQuery struct {
	services []string
	files    []string
	journalOptions
}

// journalOptions select entries of the journal. They do not apply to files.
type journalOptions struct {
	since, until *time.Time
	tail, boot   *int
	pattern      string
}

// parseNodeLogQuery parses the query. It returns nil if there is none.
func parseNodeLogQuery(query url.Values) (*nodeLogQuery, field.ErrorList) {
	var q nodeLogQuery
	var errs field.ErrorList
	for _, name := range query["query"] {
		switch {
		case strings.ContainsAny(name, `/\`): // a path, with backslashes on Windows
			q.files = append(q.files, name)
		case strings.TrimSpace(name) != "":
			q.services = append(q.services, name)
		}
	}
	if query.Has("query") && len(q.files)+len(q.services) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("query"), query["query"], "may not be empty"))
	}
	for _, bound := range []struct {
		name  string
		value **time.Time
	}{{"sinceTime", &q.since}, {"untilTime", &q.until}} {
		if text := query.Get(bound.name); text != "" {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				errs = append(errs, field.Invalid(field.NewPath(bound.name), text, "invalid time format"))
			}
			*bound.value = &at
		}
	}
	for _, number := range []struct {
		name  string
		value **int
	}{{"boot", &q.boot}, {"tailLines", &q.tail}} {
		if text := query.Get(number.name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				errs = append(errs, field.Invalid(field.NewPath(number.name), text, err.Error()))
			}
			*number.value = &n
		}
	}
	q.pattern = query.Get("pattern")
	if len(errs) > 0 || len(q.files)+len(q.services) == 0 && q.journalOptions == (journalOptions{}) {
		return nil, errs
	}
	return &q, nil
}

// validate checks a parsed query.
func (q *nodeLogQuery) validate(dir logDir) field.ErrorList {
	errs := q.validateServices()
	path := field.NewPath("query")
	switch {
	case len(q.files)+len(q.services) == 0:
		errs = append(errs, field.Required(path, "cannot be empty with options"))
	case len(q.files) > 0 && len(q.services) > 0:
		errs = append(errs, field.Invalid(path, fmt.Sprintf("%v, %v", q.files, q.services), "cannot specify a file and service"))
	case len(q.files) > 1:
		errs = append(errs, field.Invalid(path, q.files, "cannot specify more than one file"))
	case len(q.files) == 1 && q.journalOptions != (journalOptions{}):
		errs = append(errs, field.Invalid(path, q.files, "cannot specify file with options"))
	case len(q.files) == 1:
		if err := dir.readable(q.file()); err != nil {
			errs = append(errs, field.Invalid(path, q.files, err.Error()))
		}
	}
	if q.since != nil && q.until != nil && q.since.After(*q.until) {
		errs = append(errs, field.Invalid(field.NewPath("untilTime"), q.until.Format(time.RFC3339), "must be after `sinceTime`"))
	}
	if q.boot != nil && *q.boot > 0 {
		errs = append(errs, field.Invalid(field.NewPath("boot"), *q.boot, "must be less than 1"))
	}
	if q.tail != nil {
		for _, text := range validation.IsInRange(*q.tail, 0, maxTailLines) {
			errs = append(errs, field.Invalid(field.NewPath("tailLines"), *q.tail, text))
		}
	}
	if _, err := syntax.Parse(q.pattern, syntax.Perl); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("pattern"), q.pattern, err.Error()))
	}
	return errs
}

func (q *nodeLogQuery) validateServices() (errs field.ErrorList) {
	path := field.NewPath("query")
	for _, name := range q.services {
		if len(name) > maxServiceName {
			errs = append(errs, field.Invalid(path, name, fmt.Sprintf("length must be less than %d", maxServiceName)))
		} else if unsafeServiceChars.MatchString(name) {
			errs = append(errs, field.Invalid(path, name, "input contains unsupported characters"))
		}
	}
	if len(q.services) > maxQueriedServices {
		errs = append(errs, field.TooMany(path, len(q.services), maxQueriedServices))
	}
	return errs
}

// file returns the requested file relative to the log directory. Clients send it with a leading
// slash, those on Windows with backslashes.
func (q *nodeLogQuery) file() string {
	return cmp.Or(strings.TrimLeft(strings.ReplaceAll(q.files[0], `\`, "/"), "/"), ".")
}
