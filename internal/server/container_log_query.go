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

// parseLogQuery parses log options. It ignores unknown parameters, and takes the first of
// repeated ones.
func parseLogQuery(query url.Values) (*v1.PodLogOptions, error) {
	o := &v1.PodLogOptions{
		Follow:     isTrue(query, "follow"),
		Previous:   isTrue(query, "previous"),
		Timestamps: isTrue(query, "timestamps"),
	}
	// "tail" is the old name of "tailLines".
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
	return o, validateLogOptions(o)
}

// isTrue parses a boolean: every value but 0 and false is true.
func isTrue(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "0" && !strings.EqualFold(value, "false")
}

func validateLogOptions(o *v1.PodLogOptions) error {
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

// sinceTime returns the time of the oldest entry to send.
func sinceTime(o *v1.PodLogOptions, now time.Time) time.Time {
	switch {
	case o.SinceSeconds != nil:
		// A duration cannot hold more than this; the whole log is sent then.
		seconds := min(*o.SinceSeconds, int64(time.Duration(1<<63-1)/time.Second))
		return now.Add(-time.Duration(seconds) * time.Second)
	case o.SinceTime != nil:
		return o.SinceTime.Time
	}
	return time.Time{}
}
