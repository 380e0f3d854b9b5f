package serviceproxy

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recorded is what a proxier is asked to do.
type recorded struct{ calls []string }

func (r *recorded) OnEndpointSliceAdd(s *discoveryv1.EndpointSlice) {
	r.calls = append(r.calls, "add "+s.Name)
}
func (r *recorded) OnEndpointSliceUpdate(_, s *discoveryv1.EndpointSlice) {
	r.calls = append(r.calls, "update "+s.Name)
}
func (r *recorded) OnEndpointSliceDelete(s *discoveryv1.EndpointSlice) {
	r.calls = append(r.calls, "delete "+s.Name)
}
func (r *recorded) OnEndpointSlicesSynced() { r.calls = append(r.calls, "synced") }

func TestSlicesOfHeadlessServicesAreHidden(t *testing.T) {
	plain := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	hidden := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "hidden", Labels: map[string]string{corev1.IsHeadlessService: ""}}}
	for name, row := range map[string]struct {
		do   func(proxied)
		want []string
	}{
		"plain_is_added":           {func(p proxied) { p.OnEndpointSliceAdd(plain) }, []string{"add plain"}},
		"plain_is_updated":         {func(p proxied) { p.OnEndpointSliceUpdate(plain, plain) }, []string{"update plain"}},
		"plain_is_deleted":         {func(p proxied) { p.OnEndpointSliceDelete(plain) }, []string{"delete plain"}},
		"headless_is_not_added":    {func(p proxied) { p.OnEndpointSliceAdd(hidden) }, nil},
		"headless_is_not_updated":  {func(p proxied) { p.OnEndpointSliceUpdate(hidden, hidden) }, nil},
		"headless_is_not_deleted":  {func(p proxied) { p.OnEndpointSliceDelete(hidden) }, nil},
		"a_new_label_deletes":      {func(p proxied) { p.OnEndpointSliceUpdate(plain, hidden) }, []string{"delete plain"}},
		"a_removed_label_adds":     {func(p proxied) { p.OnEndpointSliceUpdate(hidden, plain) }, []string{"add plain"}},
		"the_first_list_is_passed": {func(p proxied) { p.OnEndpointSlicesSynced() }, []string{"synced"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorded{}
			row.do(proxied{r})
			if !slices.Equal(r.calls, row.want) {
				t.Errorf("got %q, want %q", r.calls, row.want)
			}
		})
	}
}
