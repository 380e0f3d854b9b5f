package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// hugePageSizes lists the kernel's huge page sizes in CRI's notation, smallest first. A kernel
// without huge pages has none.
func hugePageSizes(sysDir string) ([]string, error) {
	dirs, err := os.ReadDir(filepath.Join(sysDir, "kernel/mm/hugepages"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list huge page sizes: %w", err)
	}
	var sizes []int64
	for _, d := range dirs {
		text, _ := strings.CutPrefix(d.Name(), "hugepages-")
		if kib, err := strconv.ParseInt(strings.TrimSuffix(text, "kB"), 10, 64); err == nil {
			sizes = append(sizes, kib<<10)
		}
	}
	slices.Sort(sizes)
	var names []string
	for _, s := range sizes {
		names = append(names, pageSizeName(s))
	}
	return names, nil
}

// pageSizeName formats a size in bytes with the largest unit that divides it: 2MB, 1GB.
func pageSizeName(size int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	for len(units) > 1 && size >= 1024 && size%1024 == 0 {
		size, units = size/1024, units[1:]
	}
	return strconv.FormatInt(size, 10) + units[0]
}

// hugePageLimits sets a limit for every page size of the kernel; it is zero where the container
// has none. A container without a limit of its own has the pod's.
func (r *Runtime) hugePageLimits(p *v1.Pod, c *v1.Container) []*runtimeapi.HugepageLimit {
	bySize := map[string]uint64{}
	if resourcehelper.IsPodLevelResourcesSet(p) {
		addHugePages(bySize, p.Spec.Resources.Limits)
	}
	addHugePages(bySize, c.Resources.Limits)
	var limits []*runtimeapi.HugepageLimit
	for _, size := range r.pageSizes {
		limits = append(limits, &runtimeapi.HugepageLimit{PageSize: size, Limit: bySize[size]})
	}
	return limits
}

func addHugePages(bySize map[string]uint64, limits v1.ResourceList) {
	for name, amount := range limits {
		text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		if !ok {
			continue
		}
		if size, err := resource.ParseQuantity(text); err == nil {
			bySize[pageSizeName(size.Value())] = uint64(amount.Value())
		}
	}
}
