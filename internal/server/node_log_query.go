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

// unsafeInService are the characters that no name of a service has, and that a shell or an
// option parser might take for something else.
var unsafeInService = regexp.MustCompile(`[^a-zA-Z\-_.:0-9@]`)

// nodeLogQuery asks for the logs of services of the machine, or for one file of its logs.
type nodeLogQuery struct {
	services []string
	files    []string
	journalOptions
}

// journalOptions choose a part of a journal; files have no such parts.
type journalOptions struct {
	since, until *time.Time
	tail, boot   *int
	pattern      string
}

// parseNodeLogQuery reads the query; nil means that there is none.
func parseNodeLogQuery(query url.Values) (*nodeLogQuery, field.ErrorList) {
	var q nodeLogQuery
	var wrong field.ErrorList
	for _, name := range query["query"] {
		switch {
		case strings.ContainsAny(name, `/\`): // on some machine that is a path
			q.files = append(q.files, name)
		case strings.TrimSpace(name) != "":
			q.services = append(q.services, name)
		}
	}
	if query.Has("query") && len(q.files)+len(q.services) == 0 {
		wrong = append(wrong, field.Invalid(field.NewPath("query"), query["query"], "may not be empty"))
	}
	for _, bound := range []struct {
		name  string
		value **time.Time
	}{{"sinceTime", &q.since}, {"untilTime", &q.until}} {
		if text := query.Get(bound.name); text != "" {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				wrong = append(wrong, field.Invalid(field.NewPath(bound.name), text, "invalid time format"))
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
				wrong = append(wrong, field.Invalid(field.NewPath(number.name), text, err.Error()))
			}
			*number.value = &n
		}
	}
	q.pattern = query.Get("pattern")
	if len(wrong) > 0 || len(q.files)+len(q.services) == 0 && q.journalOptions == (journalOptions{}) {
		return nil, wrong
	}
	return &q, nil
}

// check finds what is wrong with a query that could be read.
func (q *nodeLogQuery) check(tree logTree) field.ErrorList {
	wrong := q.checkServices()
	path := field.NewPath("query")
	switch {
	case len(q.files)+len(q.services) == 0:
		wrong = append(wrong, field.Required(path, "cannot be empty with options"))
	case len(q.files) > 0 && len(q.services) > 0:
		wrong = append(wrong, field.Invalid(path, fmt.Sprintf("%v, %v", q.files, q.services), "cannot specify a file and service"))
	case len(q.files) > 1:
		wrong = append(wrong, field.Invalid(path, q.files, "cannot specify more than one file"))
	case len(q.files) == 1 && q.journalOptions != (journalOptions{}):
		wrong = append(wrong, field.Invalid(path, q.files, "cannot specify file with options"))
	case len(q.files) == 1:
		if err := tree.has(q.file()); err != nil {
			wrong = append(wrong, field.Invalid(path, q.files, err.Error()))
		}
	}
	if q.since != nil && q.until != nil && q.since.After(*q.until) {
		wrong = append(wrong, field.Invalid(field.NewPath("untilTime"), q.until.Format(time.RFC3339), "must be after `sinceTime`"))
	}
	if q.boot != nil && *q.boot > 0 {
		wrong = append(wrong, field.Invalid(field.NewPath("boot"), *q.boot, "must be less than 1"))
	}
	if q.tail != nil {
		for _, text := range validation.IsInRange(*q.tail, 0, maxTailLines) {
			wrong = append(wrong, field.Invalid(field.NewPath("tailLines"), *q.tail, text))
		}
	}
	if _, err := syntax.Parse(q.pattern, syntax.Perl); err != nil {
		wrong = append(wrong, field.Invalid(field.NewPath("pattern"), q.pattern, err.Error()))
	}
	return wrong
}

func (q *nodeLogQuery) checkServices() (wrong field.ErrorList) {
	path := field.NewPath("query")
	for _, name := range q.services {
		if len(name) > maxServiceName {
			wrong = append(wrong, field.Invalid(path, name, fmt.Sprintf("length must be less than %d", maxServiceName)))
		} else if unsafeInService.MatchString(name) {
			wrong = append(wrong, field.Invalid(path, name, "input contains unsupported characters"))
		}
	}
	if len(q.services) > maxQueriedServices {
		wrong = append(wrong, field.TooMany(path, len(q.services), maxQueriedServices))
	}
	return wrong
}

// file is the file that is asked for, as a path below the log directory. Clients write it
// with a leading slash, and those of Windows with backslashes.
func (q *nodeLogQuery) file() string {
	return cmp.Or(strings.TrimLeft(strings.ReplaceAll(q.files[0], `\`, "/"), "/"), ".")
}
