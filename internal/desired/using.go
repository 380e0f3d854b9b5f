package desired

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/kubeapi"
)

// Using lists the pods that refer to a ConfigMap or Secret.
func (d *Pods) Using(object kubeapi.Ref) []types.UID {
	var uids []types.UID
	for _, p := range d.List() {
		if p.Namespace != object.Namespace {
			continue
		}
		if slices.Contains(kubeapi.References(p), object) {
			uids = append(uids, p.UID)
		}
	}
	return uids
}
