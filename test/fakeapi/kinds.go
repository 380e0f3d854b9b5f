package fakeapi

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are the resources that are served, by group, version and name.
var kinds = map[schema.GroupVersionResource]string{
	{Version: "v1", Resource: "pods"}:                                                 "Pod",
	{Version: "v1", Resource: "nodes"}:                                                "Node",
	{Version: "v1", Resource: "configmaps"}:                                           "ConfigMap",
	{Version: "v1", Resource: "secrets"}:                                              "Secret",
	{Version: "v1", Resource: "services"}:                                             "Service",
	{Version: "v1", Resource: "serviceaccounts"}:                                      "ServiceAccount",
	{Version: "v1", Resource: "events"}:                                               "Event",
	{Version: "v1", Resource: "persistentvolumes"}:                                    "PersistentVolume",
	{Version: "v1", Resource: "persistentvolumeclaims"}:                               "PersistentVolumeClaim",
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}:                 "Lease",
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}:                  "CSIDriver",
	{Group: "storage.k8s.io", Version: "v1", Resource: "csinodes"}:                    "CSINode",
	{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}:           "VolumeAttachment",
	{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}:                 "RuntimeClass",
	{Group: "certificates.k8s.io", Version: "v1", Resource: "clustertrustbundles"}:    "ClusterTrustBundle",
	{Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests"}: "PodCertificateRequest",
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}:             "ResourceSlice",
}

// target is what the path of a request names.
type target struct {
	schema.GroupVersionResource
	namespace, name, subresource string
}

// parsePath reads /api/v1/… and /apis/GROUP/VERSION/….
func parsePath(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Group, t.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	if parts[0] == "namespaces" && len(parts) >= 3 {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.Resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = parts[2]
	}
	_, ok = kinds[t.GroupVersionResource]
	return t, ok
}

func (t target) key() string { return t.namespace + "/" + t.name }
