package bed

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestOverlayYAML(t *testing.T) {
	cases := []struct{ name, base, over, want string }{
		{"nothing over", "a: 1", "", "a: 1"},
		{"a new field", "a: 1", "b: 2", "{a: 1, b: 2}"},
		{"another value", "a: 1", "a: 2", "a: 2"},
		{"within a field", "a: {x: 1, y: 2}", "a: {y: 3}", "a: {x: 1, y: 3}"},
		{"a list is replaced", "a: [1, 2]", "a: [3]", "a: [3]"},
		{"a field becomes a map", "a: 1", "a: {x: 1}", "a: {x: 1}"},
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
