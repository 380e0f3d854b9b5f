package volume

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Owned is a mounted volume whose content is the pod's: how much there is of it says
// something about the pod.
type Owned struct {
	Name     string
	HostPath string
	// Local ones lie on the node's disk and go with the pod.
	Local bool
	// Claim is the PersistentVolumeClaim behind it, if there is one.
	Claim string
}

// OwnedVolumes lists a pod's own volumes by name. A folder of the host is not among them:
// what is in it is the host's. Nor is a device, which does not say how full it is.
func (v *Volumes) OwnedVolumes(uid types.UID) []Owned {
	v.mu.Lock()
	defer v.mu.Unlock()
	pv := v.pods[uid]
	if pv == nil {
		return nil
	}
	var owned []Owned
	for name, state := range pv.volumes {
		spec := findVolume(pv.pod, name)
		if !state.mounted || state.up.spec.Block() || spec == nil || spec.HostPath != nil {
			continue
		}
		owned = append(owned, Owned{Name: name, HostPath: state.up.result.HostPath, Local: isLocal(spec), Claim: claimOf(pv.pod, spec)})
	}
	slices.SortFunc(owned, func(a, b Owned) int { return strings.Compare(a.Name, b.Name) })
	return owned
}

// isLocal: what lies in memory or is a copy of a Secret costs no disk.
func isLocal(spec *v1.Volume) bool {
	return spec.ConfigMap != nil || (spec.EmptyDir != nil && spec.EmptyDir.Medium == v1.StorageMediumDefault)
}

func claimOf(p *v1.Pod, spec *v1.Volume) string {
	switch {
	case spec.PersistentVolumeClaim != nil:
		return spec.PersistentVolumeClaim.ClaimName
	case spec.Ephemeral != nil:
		return p.Name + "-" + spec.Name
	}
	return ""
}
