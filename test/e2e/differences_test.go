package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// acceptedDifference is an accepted difference from the recordings, with the reason.
type acceptedDifference struct {
	difference *regexp.Regexp
	reason     string
}

// acceptedDifferences are all accepted differences. Some do not occur with the reference kubelet.
var acceptedDifferences = []acceptedDifference{
	{
		regexp.MustCompile(`status: resources(: recorded nothing, now \{\}|\.limits\.memory: recorded "9007199254740988Ki", now .*)$`),
		"the reference shows cgroup v1's value for no limit, the largest page-aligned number",
	},
	{
		regexp.MustCompile(`(^full inside: \[\d+\]|oomScoreAdj): recorded "999", now "99\d"$`),
		"the value depends on the host's memory",
	},
	{
		regexp.MustCompile(`^deleted-\S+ status: conditions\[[23]\]\.(reason: recorded "ContainersNotReady", now "PodFailed"|message: recorded "containers with unready status: \[c\]", now nothing)$`),
		"for a pod that is deleted before it ran, the reference derives the conditions before the phase Failed",
	},
	{
		regexp.MustCompile(`^unready events: .* Readiness probe errored and resulted in unknown state: rpc error`),
		"a race between the probe and the exit of its container",
	},
	{
		regexp.MustCompile(`^unready events: not recorded: Warning \| Unhealthy \| (Readiness|Liveness) probe failed: command timed out: "false" timed out after 1s`),
		"on a busy machine the probe's command may take longer than its timeout of one second",
	},
	{
		regexp.MustCompile(`^unready events: not recorded: Warning \| BackOff \| Back-off restarting failed container c `),
		"the reference sends it too, but after more failed probes: the event rate limit is 25 warnings of one pod",
	},
}

// differences lists the fields that differ from the recording.
func differences(subject string, recording, now any) []string {
	before, after := map[string]string{}, map[string]string{}
	flatten("", recording, before)
	flatten("", now, after)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var found []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if was, is := before[path], after[path]; was != is {
			found = append(found, fmt.Sprintf("%s: %s: recorded %s, now %s", subject, path, orNothing(was), orNothing(is)))
		}
	}
	return found
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// flatten maps the path of every leaf of a tree to its value.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			flatten(strings.TrimPrefix(path+"."+key, "."), inner, into)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, inner := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), inner, into)
		}
		if len(v) > 0 {
			return
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(err.Error())
	}
	into[path] = string(text)
}

// unexplained returns the differences that are not accepted, one per line.
func unexplained(differences []string) string {
	var left []string
	for _, difference := range differences {
		if reasonFor(difference) == "" {
			left = append(left, difference)
		}
	}
	return strings.Join(left, "\n")
}

func reasonFor(difference string) string {
	for _, d := range acceptedDifferences {
		if d.difference.MatchString(difference) {
			return d.reason
		}
	}
	return ""
}

// report logs all differences, and fails for each that is not accepted.
func report(t *testing.T, differences []string) {
	t.Helper()
	for _, difference := range differences {
		if reason := reasonFor(difference); reason != "" {
			t.Logf("%s\n\taccepted: %s", difference, reason)
		} else {
			t.Error(difference)
		}
	}
}
