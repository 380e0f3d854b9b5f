package volume

import (
	"time"

	"swiftlet/internal/volume/plugin"
)

// unknownPlugin is the reference kubelet's label for volumes without a plugin.
const unknownPlugin = "N/A"

// qualifiedPlugin is the plugin name, with the driver if the plugin has drivers.
func qualifiedPlugin(kind plugin.Plugin, spec plugin.Spec) string {
	if kind == nil {
		return unknownPlugin
	}
	if driver := driverOf(kind, spec); driver != "" {
		return kind.Name() + ":" + driver
	}
	return kind.Name()
}

// driverOf is the driver of the volume, "" for none.
func driverOf(kind plugin.Plugin, spec plugin.Spec) string {
	if driven, ok := kind.(plugin.DriverNamer); ok {
		return driven.DriverName(spec)
	}
	return ""
}

func (u mountedVolume) qualifiedPlugin() string { return qualifiedPlugin(u.kind, u.spec) }

func (v *Volumes) observeOperation(kind string, operation Operation, began time.Time, err error) {
	if v.deps.Meters.Operation != nil {
		v.deps.Meters.Operation(kind, operation, v.deps.Clock.Since(began), err)
	}
}

// Counts is the number of volumes by plugin.
type Counts struct{ Desired, Mounted map[string]int }

// Counts counts the volumes of all pods. The plugin of a claim is known once it is mounted.
func (v *Volumes) Counts() Counts {
	t := Counts{Desired: map[string]int{}, Mounted: map[string]int{}}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, pv := range v.pods {
		for _, vol := range usedVolumes(pv.pod) {
			if state := pv.volumes[vol.Name]; state != nil && state.mounted {
				t.Mounted[state.mountedVolume.qualifiedPlugin()]++
				t.Desired[state.mountedVolume.qualifiedPlugin()]++
				continue
			}
			spec := plugin.Spec{Volume: vol}
			t.Desired[qualifiedPlugin(v.kindFor(spec), spec)]++
		}
	}
	return t
}
