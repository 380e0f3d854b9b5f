package config

import (
	"reflect"
	"testing"
)

// FuzzDropIns merges a drop-in into another: a second merge of the same file changes nothing, and what a
// drop-in sets is set.
func FuzzDropIns(f *testing.F) {
	f.Add([]byte("maxPods: 5\nauthentication: {anonymous: {enabled: false}}\n"), []byte("maxPods: null\nauthentication: {webhook: {enabled: true}}\n"))
	f.Add([]byte("a: [1]\n"), []byte("a: {b: null}\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		base, err := decodeValues(first)
		if err != nil {
			return
		}
		patch, err := decodeValues(second)
		if err != nil {
			return
		}
		once := mergePatch(mergePatch(nil, base), patch)
		for key, value := range patch {
			if _, set := once[key]; set == (value == nil) {
				t.Errorf("%q is %v in the drop-in and set is %v", key, value, set)
			}
		}
		copied := mergePatch(nil, mergePatch(nil, once))
		twice := mergePatch(once, patch)
		if !reflect.DeepEqual(copied, mergePatch(nil, twice)) {
			t.Errorf("merged again: %v, was %v", twice, copied)
		}
	})
}
