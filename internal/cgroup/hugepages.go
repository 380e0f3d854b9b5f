package cgroup

import (
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// unlimitedPages is the huge page limit of the QoS classes: only pods are limited.
const unlimitedPages = 1 << 62

// hugepages returns the huge page amounts of a resource list by page size.
func hugepages(list v1.ResourceList) map[int64]int64 {
	var pages map[int64]int64
	for name, amount := range list {
		text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		if !ok {
			continue
		}
		size, err := resource.ParseQuantity(text)
		if err != nil {
			continue // no kernel has such a page size
		}
		if pages == nil {
			pages = map[int64]int64{}
		}
		pages[size.Value()] += amount.Value()
	}
	return pages
}

// pageSizeName formats a page size as in the kernel's file names: 2MB, 1GB.
func pageSizeName(size int64) string {
	units := []string{"B", "KB", "MB", "GB"}
	i := 0
	for i < len(units)-1 && size >= 1024 && size%1024 == 0 {
		size /= 1024
		i++
	}
	return strconv.FormatInt(size, 10) + units[i]
}

// kernelPageSizes returns the huge page sizes of the running kernel in bytes.
func kernelPageSizes() []int64 {
	var sizes []int64
	for _, text := range cgroups.HugePageSizes() {
		// The kernel writes powers of 1024 with decimal suffixes: 2MB is 2Mi.
		size, err := resource.ParseQuantity(strings.TrimSuffix(text, "B") + "i")
		if err == nil {
			sizes = append(sizes, size.Value())
		}
	}
	return sizes
}

// unlimitedHugepages returns the huge page limits of cgroups that must not limit them.
func (t *Tree) unlimitedHugepages() map[int64]int64 {
	pages := map[int64]int64{}
	for _, size := range kernelPageSizes() {
		pages[size] = unlimitedPages
	}
	return pages
}
