package volume

import (
	"fmt"

	migration "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"swiftlet/internal/volume/plugin"
)

// migrate translates a volume of an in-tree kind that a CSI driver has replaced. It returns others
// unchanged.
func migrate(spec plugin.Spec, namespace string) (plugin.Spec, error) {
	translator := migration.New()
	var err error
	switch {
	case spec.PV != nil && translator.IsPVMigratable(spec.PV):
		spec.PV, err = translator.TranslateInTreePVToCSI(klog.Background(), spec.PV)
	case spec.PV == nil && translator.IsInlineMigratable(spec.Volume):
		spec.PV, err = translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), spec.Volume, namespace)
	}
	if err != nil {
		return plugin.Spec{}, fmt.Errorf("failed to translate in-tree pv to CSI: %w", err)
	}
	return spec, nil
}
