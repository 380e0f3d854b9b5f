package pod

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
)

// volumeKinds has a row for every field of v1.VolumeSource. Whatever differs between kinds of
// volumes outside of internal/volume is stated here and nowhere else.
var volumeKinds = []volumeKind{
	{
		field: "hostPath", is: func(v *v1.Volume) bool { return v.HostPath != nil },
		setDefaults: func(v *v1.Volume) { setDefaultPtr(&v.HostPath.Type, v1.HostPathUnset) },
		validate:    validateHostPath,
		onNodeDisk:  func(*v1.Volume) bool { return true },
	},
	{
		field: "emptyDir", is: func(v *v1.Volume) bool { return v.EmptyDir != nil },
		validate:   validateEmptyDir,
		onNodeDisk: func(v *v1.Volume) bool { return v.EmptyDir.Medium == v1.StorageMediumDefault },
		stateless:  true,
	},
	{
		field: "configMap", is: func(v *v1.Volume) bool { return v.ConfigMap != nil },
		setDefaults:  func(v *v1.Volume) { setDefaultPtr(&v.ConfigMap.DefaultMode, v1.ConfigMapVolumeSourceDefaultMode) },
		validate:     validateConfigMap,
		configMaps:   func(v *v1.Volume) []string { return []string{v.ConfigMap.Name} },
		apiReference: always("configmaps (via configmap volumes)"),
		fileUsers: func(v *v1.Volume) []**int64 {
			return append(keyUsers(v.ConfigMap.Items), &v.ConfigMap.DefaultUser)
		},
		onNodeDisk: func(*v1.Volume) bool { return true },
		stateless:  true,
	},
	{
		field: "secret", is: func(v *v1.Volume) bool { return v.Secret != nil },
		setDefaults:  func(v *v1.Volume) { setDefaultPtr(&v.Secret.DefaultMode, v1.SecretVolumeSourceDefaultMode) },
		validate:     validateSecret,
		secrets:      func(v *v1.Volume) []string { return []string{v.Secret.SecretName} },
		apiReference: always("secrets (via secret volumes)"),
		fileUsers: func(v *v1.Volume) []**int64 {
			return append(keyUsers(v.Secret.Items), &v.Secret.DefaultUser)
		},
		stateless: true,
	},
	{
		field: "downwardAPI", is: func(v *v1.Volume) bool { return v.DownwardAPI != nil },
		setDefaults: func(v *v1.Volume) {
			setDefaultPtr(&v.DownwardAPI.DefaultMode, v1.DownwardAPIVolumeSourceDefaultMode)
			defaultDownwardItems(v.DownwardAPI.Items)
		},
		validate: validateDownwardAPI,
		fileUsers: func(v *v1.Volume) []**int64 {
			return append(downwardUsers(v.DownwardAPI.Items), &v.DownwardAPI.DefaultUser)
		},
		showsPod:  func(*v1.Volume) bool { return true },
		stateless: true,
	},
	{
		field: "projected", is: func(v *v1.Volume) bool { return v.Projected != nil },
		setDefaults:  func(v *v1.Volume) { defaultProjected(v.Projected) },
		validate:     validateProjected,
		configMaps:   projectedConfigMaps,
		secrets:      projectedSecrets,
		apiReference: projectedReference,
		fileUsers:    projectedUsers,
		showsPod:     projectsPod,
		stateless:    true,
	},
	{
		field: "persistentVolumeClaim", is: func(v *v1.Volume) bool { return v.PersistentVolumeClaim != nil },
		apiReference: always("persistentvolumeclaims"),
		claim:        func(_ *v1.Pod, v *v1.Volume) string { return v.PersistentVolumeClaim.ClaimName },
	},
	{
		field: "ephemeral", is: func(v *v1.Volume) bool { return v.Ephemeral != nil },
		setDefaults:  defaultClaimTemplate,
		apiReference: always("persistentvolumeclaims (via ephemeral volumes)"),
		claim:        ephemeral.VolumeClaimName,
	},
	{
		field: "csi", is: func(v *v1.Volume) bool { return v.CSI != nil },
		secretRef:    func(v *v1.Volume) *v1.LocalObjectReference { return v.CSI.NodePublishSecretRef },
		apiReference: always("csidrivers (via CSI volumes)"),
	},
	{
		field: "image", is: func(v *v1.Volume) bool { return v.Image != nil },
		setDefaults: func(v *v1.Volume) { setDefault(&v.Image.PullPolicy, pullPolicy(v.Image.Reference)) },
	},
	{field: "nfs", is: func(v *v1.Volume) bool { return v.NFS != nil }},
	{field: "fc", is: func(v *v1.Volume) bool { return v.FC != nil }},
	{
		field: "iscsi", is: func(v *v1.Volume) bool { return v.ISCSI != nil },
		setDefaults: func(v *v1.Volume) { setDefault(&v.ISCSI.ISCSIInterface, "default") },
		secretRef:   func(v *v1.Volume) *v1.LocalObjectReference { return v.ISCSI.SecretRef },
	},
	{
		field: "flexVolume", is: func(v *v1.Volume) bool { return v.FlexVolume != nil },
		secretRef: func(v *v1.Volume) *v1.LocalObjectReference { return v.FlexVolume.SecretRef },
	},

	// In-tree kinds that CSI drivers have replaced.
	{
		field: "awsElasticBlockStore", is: func(v *v1.Volume) bool { return v.AWSElasticBlockStore != nil },
		migratedPlugin: "kubernetes.io/aws-ebs",
	},
	{
		field: "azureDisk", is: func(v *v1.Volume) bool { return v.AzureDisk != nil },
		setDefaults: func(v *v1.Volume) {
			setDefaultPtr(&v.AzureDisk.CachingMode, v1.AzureDataDiskCachingReadWrite)
			setDefaultPtr(&v.AzureDisk.FSType, "ext4")
			setDefaultPtr(&v.AzureDisk.ReadOnly, false)
			setDefaultPtr(&v.AzureDisk.Kind, v1.AzureSharedBlobDisk)
		},
		migratedPlugin: "kubernetes.io/azure-disk",
	},
	{
		field: "azureFile", is: func(v *v1.Volume) bool { return v.AzureFile != nil },
		secrets:        func(v *v1.Volume) []string { return []string{v.AzureFile.SecretName} },
		apiReference:   always("secrets (via azureFile volumes)"),
		migratedPlugin: "kubernetes.io/azure-file",
	},
	{
		field: "cinder", is: func(v *v1.Volume) bool { return v.Cinder != nil },
		secretRef:      func(v *v1.Volume) *v1.LocalObjectReference { return v.Cinder.SecretRef },
		migratedPlugin: "kubernetes.io/cinder",
	},
	{
		field: "gcePersistentDisk", is: func(v *v1.Volume) bool { return v.GCEPersistentDisk != nil },
		migratedPlugin: "kubernetes.io/gce-pd",
	},
	{
		field: "portworxVolume", is: func(v *v1.Volume) bool { return v.PortworxVolume != nil },
		migratedPlugin: "kubernetes.io/portworx-volume",
	},
	{
		field: "vsphereVolume", is: func(v *v1.Volume) bool { return v.VsphereVolume != nil },
		migratedPlugin: "kubernetes.io/vsphere-volume",
	},

	// Kinds that the API still has and no plugin mounts.
	{
		field: "cephfs", is: func(v *v1.Volume) bool { return v.CephFS != nil },
		secretRef: func(v *v1.Volume) *v1.LocalObjectReference { return v.CephFS.SecretRef },
	},
	{field: "flocker", is: func(v *v1.Volume) bool { return v.Flocker != nil }},
	{field: "gitRepo", is: func(v *v1.Volume) bool { return v.GitRepo != nil }},
	{
		field: "glusterfs", is: func(v *v1.Volume) bool { return v.Glusterfs != nil },
		apiReference: always("endpoints (via glusterFS volumes)"),
	},
	{field: "photonPersistentDisk", is: func(v *v1.Volume) bool { return v.PhotonPersistentDisk != nil }},
	{field: "quobyte", is: func(v *v1.Volume) bool { return v.Quobyte != nil }},
	{
		field: "rbd", is: func(v *v1.Volume) bool { return v.RBD != nil },
		setDefaults: func(v *v1.Volume) {
			setDefault(&v.RBD.RBDPool, "rbd")
			setDefault(&v.RBD.RadosUser, "admin")
			setDefault(&v.RBD.Keyring, "/etc/ceph/keyring")
		},
		secretRef: func(v *v1.Volume) *v1.LocalObjectReference { return v.RBD.SecretRef },
	},
	{
		field: "scaleIO", is: func(v *v1.Volume) bool { return v.ScaleIO != nil },
		setDefaults: func(v *v1.Volume) {
			setDefault(&v.ScaleIO.StorageMode, "ThinProvisioned")
			setDefault(&v.ScaleIO.FSType, "xfs")
		},
		secretRef: func(v *v1.Volume) *v1.LocalObjectReference { return v.ScaleIO.SecretRef },
	},
	{
		field: "storageos", is: func(v *v1.Volume) bool { return v.StorageOS != nil },
		secretRef: func(v *v1.Volume) *v1.LocalObjectReference { return v.StorageOS.SecretRef },
	},
}

func always(reference string) func(*v1.Volume) string {
	return func(*v1.Volume) string { return reference }
}
