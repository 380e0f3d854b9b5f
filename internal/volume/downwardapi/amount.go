package downwardapi

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"swiftlet/internal/pod"
)

// amount reads a request or limit of a container, in units of the divisor, rounded up.
// A limit that is not set is what the node can give at most.
func amount(p *v1.Pod, of *v1.ResourceFieldSelector, allocatable v1.ResourceList) (string, error) {
	c := pod.FindContainer(p, of.ContainerName)
	if c == nil {
		return "", fmt.Errorf("container %s not found", of.ContainerName)
	}
	side, text, _ := strings.Cut(of.Resource, ".")
	name := v1.ResourceName(text)
	bounded := name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage
	if !bounded && !strings.HasPrefix(text, v1.ResourceHugePagesPrefix) {
		return "", fmt.Errorf("unsupported container resource : %v", of.Resource)
	}
	var quantity resource.Quantity
	switch side {
	case "requests":
		quantity = c.Resources.Requests[name]
	case "limits":
		quantity = c.Resources.Limits[name]
		// Huge pages are never overcommitted: no limit there means none may be used.
		if quantity.IsZero() && bounded {
			quantity = allocatable[name]
		}
	default:
		return "", fmt.Errorf("unsupported container resource : %v", of.Resource)
	}
	divisor := of.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == v1.ResourceCPU {
		return quotient(quantity.MilliValue(), divisor.MilliValue()), nil
	}
	return quotient(quantity.Value(), divisor.Value()), nil
}

func quotient(value, divisor int64) string {
	whole := value / divisor
	if value%divisor > 0 {
		whole++
	}
	return strconv.FormatInt(whole, 10)
}
