package status

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
)

// FuzzPatch: whatever status the API server has, the patch is valid there, and its result has the kubelet's
// fields.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(`{"phase":"Running","podIPs":[{"ip":"10.0.0.1"}],"conditions":[{"type":"Ready","status":"True"},{"type":"x/y","status":"False"}]}`),
		[]byte(`{"phase":"Failed","reason":"R","message":"M","containerStatuses":[{"name":"c","ready":true}]}`))
	f.Add([]byte(`{}`), []byte(`{"conditions":[{"type":"Ready","status":"True"}]}`))
	f.Fuzz(func(t *testing.T, have, want []byte) {
		var before, now v1.PodStatus
		if json.Unmarshal(have, &before) != nil || json.Unmarshal(want, &now) != nil || repeats(before) || repeats(now) || now.Phase == "" { // a phase is always derived
			return
		}
		p := &v1.Pod{}
		merged := merge(p, &v1.Pod{Status: before}, before, now, time.Unix(1, 0))
		patch, err := patchFor("uid", &merged)
		if err != nil {
			t.Fatal(err)
		}
		after := apply(t, before, patch)
		for _, same := range []struct{ got, want any }{
			{after.Phase, merged.Phase}, {after.Reason, merged.Reason}, {after.Message, merged.Message},
			{after.PodIP, merged.PodIP}, {after.HostIP, merged.HostIP},
		} {
			if diff := cmp.Diff(same.want, same.got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("after the patch (-want +got)\n%s", diff)
			}
		}
	})
}

// repeats reports whether lists have two items with the same key, which no API server accepts.
func repeats(s v1.PodStatus) bool {
	seen := map[string]bool{}
	again := func(key string) bool {
		defer func() { seen[key] = true }()
		return seen[key]
	}
	for _, c := range s.Conditions {
		if c.Type == "" || again("condition "+string(c.Type)) {
			return true
		}
	}
	for _, ip := range s.PodIPs {
		if again("pod " + ip.IP) {
			return true
		}
	}
	for _, ip := range s.HostIPs {
		if again("host " + ip.IP) {
			return true
		}
	}
	return false
}
