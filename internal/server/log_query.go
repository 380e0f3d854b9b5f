package server

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	errQuery   = errors.New(`{"message": "Unable to decode query."}`)
	errOptions = errors.New(`{"message": "Invalid request."}`)
)

// parseLogQuery reads what part of a log is wanted. Unknown parameters are ignored, and
// of those given twice the first counts.
func parseLogQuery(query url.Values) (*v1.PodLogOptions, error) {
	o := &v1.PodLogOptions{
		Follow:     isSet(query, "follow"),
		Previous:   isSet(query, "previous"),
		Timestamps: isSet(query, "timestamps"),
	}
	// "tail" is what "tailLines" was once called.
	if tail := query.Get("tail"); tail == "all" {
		query.Del("tailLines")
	} else if tail != "" {
		query.Set("tailLines", tail)
	}
	for name, value := range map[string]**int64{"tailLines": &o.TailLines, "limitBytes": &o.LimitBytes, "sinceSeconds": &o.SinceSeconds} {
		if !query.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil {
			return nil, errQuery
		}
		*value = &n
	}
	if query.Has("sinceTime") {
		o.SinceTime = &metav1.Time{}
		if err := o.SinceTime.UnmarshalQueryParameter(query.Get("sinceTime")); err != nil {
			return nil, errQuery
		}
	}
	if query.Has("stream") {
		stream := query.Get("stream")
		o.Stream = &stream
	}
	return o, checkLogOptions(o)
}

// isSet reads a switch: any value turns it on but 0 and false.
func isSet(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "0" && !strings.EqualFold(value, "false")
}

func checkLogOptions(o *v1.PodLogOptions) error {
	streams := []string{v1.LogStreamAll, v1.LogStreamStdout, v1.LogStreamStderr}
	switch {
	case o.TailLines != nil && *o.TailLines < 0,
		o.LimitBytes != nil && *o.LimitBytes < 1,
		o.SinceSeconds != nil && o.SinceTime != nil,
		o.SinceSeconds != nil && *o.SinceSeconds < 1,
		o.Stream != nil && !slices.Contains(streams, *o.Stream),
		o.Stream != nil && *o.Stream != v1.LogStreamAll && o.TailLines != nil:
		return errOptions
	}
	return nil
}

// sinceOf is the time before which entries are left out.
func sinceOf(o *v1.PodLogOptions, now time.Time) time.Time {
	switch {
	case o.SinceSeconds != nil:
		// A longer time than a duration can hold is all of it.
		seconds := min(*o.SinceSeconds, int64(time.Duration(1<<63-1)/time.Second))
		return now.Add(-time.Duration(seconds) * time.Second)
	case o.SinceTime != nil:
		return o.SinceTime.Time
	}
	return time.Time{}
}
