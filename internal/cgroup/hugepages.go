package cgroup

import (
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// unboundedPages is what the groups above pods are given: only pods are bounded.
const unboundedPages = 1 << 62

// hugepages picks the huge page amounts out of a resource list, by page size.
func hugepages(list v1.ResourceList) map[int64]int64 {
	var pages map[int64]int64
	for name, amount := range list {
		text, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		if !ok {
			continue
		}
		size, err := resource.ParseQuantity(text)
		if err != nil {
			continue // such a name is not of a size that any kernel has
		}
		if pages == nil {
			pages = map[int64]int64{}
		}
		pages[size.Value()] += amount.Value()
	}
	return pages
}

// pageSizeName spells a page size as in the kernel's file names: 2MB, 1GB.
func pageSizeName(size int64) string {
	units := []string{"B", "KB", "MB", "GB"}
	i := 0
	for i < len(units)-1 && size >= 1024 && size%1024 == 0 {
		size /= 1024
		i++
	}
	return strconv.FormatInt(size, 10) + units[i]
}

// kernelPageSizes are the huge page sizes of the running kernel, in bytes.
func kernelPageSizes() []int64 {
	var sizes []int64
	for _, text := range cgroups.HugePageSizes() {
		// The kernel's names are powers of 1024 under decimal suffixes: 2MB is 2Mi.
		size, err := resource.ParseQuantity(strings.TrimSuffix(text, "B") + "i")
		if err == nil {
			sizes = append(sizes, size.Value())
		}
	}
	return sizes
}

// unbounded are the bounds of the groups between the node's and the pods'.
func (t *Tree) unbounded() map[int64]int64 {
	pages := map[int64]int64{}
	for _, size := range kernelPageSizes() {
		pages[size] = unboundedPages
	}
	return pages
}
