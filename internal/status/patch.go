package status

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A patch has everything that the kubelet owns, including null for absent fields. So it is correct
// whatever the API server has, and the publisher need not read the pod first. Otherwise a strategic
// merge would keep old IPs, reasons and conditions.

// clearable are the fields that are null in a patch if they are absent.
var clearable = []string{
	"message", "reason", "hostIP", "hostIPs", "podIP", "podIPs", "initContainerStatuses", "containerStatuses",
	"ephemeralContainerStatuses", "resize", "allocatedResources", "resources", "volumeHealth",
}

// patchFor returns the patch of the status. It applies only to the pod with this UID.
func patchFor(uid types.UID, s *v1.PodStatus) ([]byte, error) {
	fields, err := toMap(withoutConditions(s))
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	for _, name := range clearable {
		if _, set := fields[name]; !set {
			fields[name] = nil
		}
	}
	for _, name := range []string{"hostIPs", "podIPs"} {
		if list, ok := fields[name].([]any); ok {
			fields[name] = append([]any{map[string]any{"$patch": "replace"}}, list...)
		}
	}
	clearAmounts(fields, "allocatedResources")
	if resources, ok := fields["resources"].(map[string]any); ok {
		clearAmounts(resources, "limits")
		clearAmounts(resources, "requests")
	}
	items, order := conditionPatch(s.Conditions)
	fields["conditions"] = items
	if len(order) > 0 {
		fields["$setElementOrder/conditions"] = order
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status":   fields,
	})
}

// clearAmounts sets absent CPU and memory amounts to null, which a resize can remove.
func clearAmounts(object map[string]any, name string) {
	amounts, ok := object[name].(map[string]any)
	if !ok {
		object[name] = nil
		return
	}
	for _, resource := range []string{"cpu", "memory"} {
		if _, set := amounts[resource]; !set {
			amounts[resource] = nil
		}
	}
}

// withoutConditions drops the fields of other components, and conditions, which have a patch of their
// own.
func withoutConditions(s *v1.PodStatus) v1.PodStatus {
	own := ownedPart(*s)
	own.Conditions = nil
	return own
}

// conditionPatch replaces the kubelet's conditions one by one, deletes those that the status does not
// have, and keeps those of other components. order is the order of all conditions.
func conditionPatch(conditions []v1.PodCondition) (items, order []any) {
	for _, c := range conditions {
		order = append(order, map[string]any{"type": c.Type})
		if !isOwned(c.Type) {
			continue
		}
		item := map[string]any{
			"type":               c.Type,
			"status":             c.Status,
			"lastProbeTime":      c.LastProbeTime,
			"lastTransitionTime": c.LastTransitionTime,
			"reason":             orNull(c.Reason),
			"message":            orNull(c.Message),
			"observedGeneration": orNull(c.ObservedGeneration),
		}
		items = append(items, item)
	}
	for _, t := range owned {
		if find(conditions, t) == nil {
			items = append(items, map[string]any{"type": t, "$patch": "delete"})
		}
	}
	return items, order
}

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func toMap(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	return fields, json.Unmarshal(data, &fields)
}
