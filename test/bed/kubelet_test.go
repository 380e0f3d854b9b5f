package bed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestOverlayYAML(t *testing.T) {
	cases := []struct{ name, base, over, want string }{
		{"empty overlay", "a: 1", "", "a: 1"},
		{"new field is added", "a: 1", "b: 2", "{a: 1, b: 2}"},
		{"value is replaced", "a: 1", "a: 2", "a: 2"},
		{"nested maps are merged", "a: {x: 1, y: 2}", "a: {y: 3}", "a: {x: 1, y: 3}"},
		{"list is replaced", "a: [1, 2]", "a: [3]", "a: [3]"},
		{"scalar is replaced by a map", "a: 1", "a: {x: 1}", "a: {x: 1}"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text, err := overlayYAML(c.base, c.over)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := yaml.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
