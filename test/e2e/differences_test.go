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

// departure is a kind of difference from the recordings that has its reason.
type departure struct {
	difference *regexp.Regexp
	reason     string
}

// departures are all that are accepted. With the reference kubelet some do not occur.
var departures = []departure{
	{
		regexp.MustCompile(`status: resources(: recorded nothing, now \{\}|\.limits\.memory: recorded "9007199254740988Ki", now .*)$`),
		"the reference shows cgroup v1's word for no limit, the largest number that the kernel can hold",
	},
	{
		regexp.MustCompile(`(^full inside: \[\d+\]|oomScoreAdj): recorded "999", now "99\d"$`),
		"what a pod requests counts as a share of the machine's memory",
	},
	{
		regexp.MustCompile(`^deleted-\S+ status: conditions\[[23]\]\.(reason: recorded "ContainersNotReady", now "PodFailed"|message: recorded "containers with unready status: \[c\]", now nothing)$`),
		"of a pod that is deleted before it ran, the reference derives the conditions first and then that it has failed",
	},
	{
		regexp.MustCompile(`^unready events: .* Readiness probe errored and resulted in unknown state: rpc error`),
		"a probe that meets the end of its container: by chance it does, or does not",
	},
	{
		regexp.MustCompile(`^unready events: not recorded: Warning \| Unhealthy \| (Readiness|Liveness) probe failed: command timed out: "false" timed out after 1s`),
		"on a busy machine the probe's one second may be over before its command is",
	},
	{
		regexp.MustCompile(`^unready events: not recorded: Warning \| BackOff \| Back-off restarting failed container c `),
		"the reference says so too, but after more failed probes: of one pod, no more than 25 warnings at a time are let through",
	},
}

// differences says, field by field, where a thing is not as it was recorded.
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

// flatten gives every single value of a tree its path.
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

// unexplained are the differences without a reason, one in a line.
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
	for _, d := range departures {
		if d.difference.MatchString(difference) {
			return d.reason
		}
	}
	return ""
}

// report shows all differences, and fails if one of them has no reason.
func report(t *testing.T, differences []string) {
	t.Helper()
	for _, difference := range differences {
		if reason := reasonFor(difference); reason != "" {
			t.Logf("%s\n\texplained: %s", difference, reason)
		} else {
			t.Error(difference)
		}
	}
}
