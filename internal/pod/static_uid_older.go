package pod

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// olderLayouts are the structs of the reference kubelet's releases v1.36 and v1.35 that differ from those of
// v1.37, for staticUID. Structs that no static pod can have are left out: those of service account tokens,
// of pod certificates and of container statuses.
var olderLayouts = []map[string][]string{
	layouts(strings.NewReplacer()),
	layouts(strings.NewReplacer("SchedulingGroup", "WorkloadRef=*core.WorkloadReference", "NodeAllocatableResourceClaimStatuses", "")),
}

// layouts applies the difference of a release from v1.36.
func layouts(difference *strings.Replacer) map[string][]string {
	all := map[string][]string{}
	for name, fields := range layoutsOf136 {
		all["core."+name] = strings.Fields(difference.Replace(fields))
	}
	return all
}

var layoutsOf136 = map[string]string{
	"PodSpec": "Volumes InitContainers Containers EphemeralContainers RestartPolicy TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy" +
		" NodeSelector ServiceAccountName AutomountServiceAccountToken NodeName SecurityContext ImagePullSecrets Hostname Subdomain SetHostnameAsFQDN" +
		" Affinity SchedulerName Tolerations HostAliases PriorityClassName Priority PreemptionPolicy DNSConfig ReadinessGates RuntimeClassName Overhead" +
		" EnableServiceLinks TopologySpreadConstraints OS SchedulingGates ResourceClaims Resources HostnameOverride SchedulingGroup",
	"PodSecurityContext": "HostNetwork HostPID HostIPC ShareProcessNamespace HostUsers SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot" +
		" SupplementalGroups SupplementalGroupsPolicy FSGroup FSGroupChangePolicy Sysctls SeccompProfile AppArmorProfile SELinuxChangePolicy",
	"PodStatus": "ObservedGeneration Phase Conditions Message Reason NominatedNodeName HostIP HostIPs PodIPs StartTime QOSClass InitContainerStatuses" +
		" ContainerStatuses EphemeralContainerStatuses Resize ResourceClaimStatuses ExtendedResourceClaimStatus AllocatedResources Resources" +
		" NodeAllocatableResourceClaimStatuses",
	"VolumeSource": "HostPath EmptyDir GCEPersistentDisk AWSElasticBlockStore GitRepo Secret NFS ISCSI Glusterfs PersistentVolumeClaim RBD Quobyte FlexVolume" +
		" Cinder CephFS Flocker DownwardAPI FC AzureFile ConfigMap VsphereVolume AzureDisk PhotonPersistentDisk Projected PortworxVolume ScaleIO StorageOS" +
		" CSI Ephemeral Image",
	"EmptyDirVolumeSource":         "Medium SizeLimit",
	"SecretVolumeSource":           "SecretName Items DefaultMode Optional",
	"ConfigMapVolumeSource":        "LocalObjectReference Items DefaultMode Optional",
	"ProjectedVolumeSource":        "Sources DefaultMode",
	"KeyToPath":                    "Key Path Mode",
	"DownwardAPIVolumeSource":      "Items DefaultMode",
	"DownwardAPIVolumeFile":        "Path FieldRef ResourceFieldRef Mode",
	"ClusterTrustBundleProjection": "Name SignerName LabelSelector Optional Path",
	"VolumeMount":                  "Name ReadOnly RecursiveReadOnly MountPath SubPath MountPropagation SubPathExpr",
	"HTTPGetAction":                "Path Port Host Scheme HTTPHeaders",
	"GRPCAction":                   "Port Service",
}

// liveUID returns the UID of a static pod. If it runs under the UID that an earlier release of the reference
// kubelet gave it, it keeps that, and so does not restart.
func liveUID(p *v1.Pod, origin Origin, runs func(types.UID) bool) types.UID {
	current := staticUID(p, origin, nil)
	if runs == nil || runs(current) {
		return current
	}
	for _, layout := range olderLayouts {
		if older := staticUID(p, origin, layout); runs(older) {
			return older
		}
	}
	return current
}
