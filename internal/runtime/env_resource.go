package runtime

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"swiftlet/internal/pod"
)

// resourceField is an amount of a container of the pod, in units of the divisor and
// rounded up. A limit that is not set is the pod's, or else what the node can give.
func (in EnvInput) resourceField(of *v1.ResourceFieldSelector) (string, error) {
	c := in.Container
	if of.ContainerName != "" {
		if c = pod.FindContainer(in.Pod, of.ContainerName); c == nil {
			return "", fmt.Errorf("container %s not found", of.ContainerName)
		}
	}
	divisor := of.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	list, rest, _ := strings.Cut(of.Resource, ".")
	name := v1.ResourceName(rest)
	hugePages := strings.HasPrefix(rest, v1.ResourceHugePagesPrefix)
	if name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage && !hugePages {
		return "", fmt.Errorf("unsupported container resource : %v", of.Resource)
	}
	var amount resource.Quantity
	switch list {
	case "requests":
		amount = c.Resources.Requests[name]
	case "limits":
		amount = c.Resources.Limits[name]
		if amount.IsZero() && !hugePages {
			amount = in.ceiling(name)
		}
	default:
		return "", fmt.Errorf("unsupported container resource : %v", of.Resource)
	}
	if name == v1.ResourceCPU {
		return divide(amount.MilliValue(), divisor.MilliValue()), nil
	}
	return divide(amount.Value(), divisor.Value()), nil
}

// ceiling is what bounds a container without a limit.
func (in EnvInput) ceiling(name v1.ResourceName) resource.Quantity {
	if resourcehelper.IsPodLevelLimitsSet(in.Pod) && resourcehelper.IsSupportedPodLevelResource(name) {
		if limit := in.Pod.Spec.Resources.Limits[name]; !limit.IsZero() {
			return limit
		}
	}
	return in.Allocatable[name]
}

func divide(amount, divisor int64) string {
	return strconv.FormatInt(int64(math.Ceil(float64(amount)/float64(divisor))), 10)
}
