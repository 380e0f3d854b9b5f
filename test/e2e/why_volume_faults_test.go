package e2e

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// whyDisk is a directory of the node for volumes with faults.
const whyDisk = "/var/lib/why"

// volumeFaults are faults of volumes without a driver.
func (w *whyPlace) volumeFaults() []whyFault {
	inNode(w.T, w.node, "cd /var/lib && mkdir -p why/links why/readonly why/hung && ln -s /etc why/links/link && mount -t tmpfs -o ro tmpfs why/readonly")
	hang(w.T, w.node, whyDisk+"/hung")
	hostPath := func(path string, of corev1.HostPathType) corev1.VolumeSource {
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: ptr.To(of)}}
	}
	w.createClaim("unbound", nil)
	w.createClaim("deleted", []string{"example.com/wait"})
	w.deleteClaim("deleted")
	createNamedVolume(w.T, w.in, "no-directory", w.in+"-no-directory", localVolume(w.node, whyDisk+"/none"))
	createNamedVolume(w.T, w.in, "elsewhere", w.in+"-elsewhere", localVolume(steady, whyDisk+"/links"))
	return []whyFault{
		{name: "host-path-read-only", change: mounts(hostPath(whyDisk+"/readonly/new", corev1.HostPathDirectoryOrCreate)),
			step: `volume data: hostPath /var/lib/why/readonly/new is not of the type that the pod demands, or does not exist \(.*read-only file system\), since`, object: "spec.volumes[0].hostPath, or /var/lib/why/readonly/new on the node"},
		{name: "volume-hangs", change: mounts(hostPath(whyDisk+"/hung/inside", corev1.HostPathDirectory)),
			step: `volume data: its mount has not come back`, object: "what spec.volumes[0] mounts, if it takes too long"},
		{name: "sub-path-leaves", change: func(p *corev1.Pod) {
			mounts(hostPath(whyDisk+"/links", corev1.HostPathDirectory))(p)
			container(p).VolumeMounts[0].SubPath = "link"
		}, step: `container c: a subPath cannot be used: volumeMounts\[0\].subPath "link" of container c`, object: `volumeMounts[0].subPath "link" of container c`},
		{name: "volume-full", change: mounts(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "large"}}}),
			created: w.fillVolume, step: `volume data: its file system is full \(.*no space left on device\), since`, object: "what spec.volumes[0] mounts, or the disk of the node"},
		{name: "no-mount-program", change: mounts(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "127.0.0.1", Path: "/"}}),
			step: `volume data: the node lacks the program mount.nfs, which mounts it`, object: "the packages of the node"},
		{name: "no-plugin", change: mounts(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "example.com/none"}}),
			step: `volume data: the node has no plugin for it`, object: "spec.volumes[0]"},
		{name: "claim-unbound", change: mounts(fromClaim("unbound")), step: `volume data: PersistentVolumeClaim [^ /]+/unbound is not bound to a volume, since`,
			object: "PersistentVolumeClaim NAMESPACE/unbound, its storage class or its provisioner"},
		{name: "claim-deleted", change: mounts(fromClaim("deleted")), step: `volume data: PersistentVolumeClaim [^ /]+/deleted is being deleted`,
			object: "PersistentVolumeClaim NAMESPACE/deleted, or spec.volumes[0]"},
		{name: "local-path-absent", change: mounts(fromClaim("no-directory")), step: `volume data: it cannot be mounted \(.+\), since`, object: "spec.volumes[0]"},
		{name: "volume-elsewhere", change: mounts(fromClaim("elsewhere")), step: `volume data: it cannot be used on this node \(.+\), since`,
			object: "spec.nodeAffinity of the PersistentVolume, or the node's labels"},
		{name: "unmount-busy", change: mounts(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}), ready: w.occupy, deleted: true,
			step: `volumes? (.+, )?data(, .+)?: cannot be unmounted \(.*busy\), since`, object: "what uses it on node NODE"},
	}
}

// createClaim creates a claim that nothing binds.
func (w *whyPlace) createClaim(name string, finalizers []string) {
	w.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("none"),
		Resources: corev1.VolumeResourceRequirements{Requests: quantities("storage", "1Mi")},
	}}
	if _, err := client().CoreV1().PersistentVolumeClaims(w.in).Create(w.Context(), c, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// deleteClaim deletes a claim with a finalizer, which remains.
func (w *whyPlace) deleteClaim(name string) {
	w.Helper()
	claims := client().CoreV1().PersistentVolumeClaims(w.in)
	if err := claims.Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	eventually(w.T, timeout, func() string {
		c, err := claims.Get(w.Context(), name, metav1.GetOptions{})
		if err != nil || len(c.Finalizers) > 1 {
			return fmt.Sprintf("the claim is still protected: %v", err)
		}
		return ""
	})
}

// fillVolume mounts a small file system for the volume, and creates the ConfigMap, which is larger.
func (w *whyPlace) fillVolume(p *corev1.Pod) error {
	disk := path.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~configmap")
	if _, err := w.node.Exec(w.Context(), "sh", "-c", "mkdir -p "+disk+" && mount -t tmpfs -o size=64k tmpfs "+disk); err != nil {
		return err
	}
	large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"key": strings.Repeat("x", 100<<10)}}
	_, err := client().CoreV1().ConfigMaps(w.in).Create(w.Context(), large, metav1.CreateOptions{})
	return err
}

// occupy leaves a process of the node in the pod's volume.
func (w *whyPlace) occupy(p *corev1.Pod) error {
	volume := path.Join("/var/lib/kubelet/pods", string(p.UID), "volumes/kubernetes.io~empty-dir/data")
	_, err := w.node.Exec(w.Context(), "sh", "-c", "cd "+volume+" && sleep 3600 </dev/null >/dev/null 2>&1 &")
	return err
}

// driverFaults are faults of CSI drivers and device plugins.
func (w *whyPlace) driverFaults() []whyFault {
	for _, name := range []string{"absent.csi.test", "stuck.csi.test", "busy.csi.test"} {
		createCSIDriver(w.T, name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)})
	}
	stuck, busy := startDriver(w.T, w.node, "stuck.csi.test"), startDriver(w.T, w.node, "busy.csi.test")
	awaitDriver(w.T, stuck)
	awaitDriver(w.T, busy)
	of := func(name, driver, handle string, mode corev1.PersistentVolumeMode) {
		claim(w.T, w.in, name, corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}, mode)
	}
	of("absent", "absent.csi.test", "x", corev1.PersistentVolumeFilesystem)
	of("unattached", "none.csi.test", "x", corev1.PersistentVolumeFilesystem)
	of("stuck", stuck.name, stuck.makeVolume("stuck", 1<<20), corev1.PersistentVolumeFilesystem)
	of("busy", busy.name, busy.makeVolume("busy", 1<<20), corev1.PersistentVolumeFilesystem)
	of("unknown", busy.name, "unknown", corev1.PersistentVolumeFilesystem)
	of("raw", busy.name, "raw", corev1.PersistentVolumeBlock)
	stuck.hold("before-NodeStageVolume")
	busy.hold("before-NodeUnpublishVolume")
	plugin := startPlugin(w.T, w.node)
	plugin.awaitDevices(2, 2)
	write(w.T, w.node.Path(filepath.Join(pluginState, "hang")), []byte("yes"))
	w.Cleanup(func() { _ = os.Remove(w.node.Path(filepath.Join(pluginState, "hang"))) })
	devices := func(count string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { setLimits(p, sample, count) }
	}
	return []whyFault{
		{name: "csi-driver-absent", change: mounts(fromClaim("absent")), step: `volume data: CSI driver absent.csi.test is not running on the node, since`, object: "the CSI driver absent.csi.test on the node"},
		{name: "not-attached", change: mounts(fromClaim("unattached")), step: `volume data: it is not attached to the node yet \(.+\), since`, object: "the VolumeAttachment, or the attacher of the CSI driver"},
		{name: "csi-stage-hangs", change: mounts(fromClaim("stuck")), step: `volume data: its mount has not come back, since`, object: "what spec.volumes[0] mounts, if it takes too long"},
		{name: "csi-unmount-hangs", change: mounts(fromClaim("busy")), deleted: true, step: `volumes? (.+, )?data(, .+)?: is being unmounted, since`, object: "its file system, server or driver, if it takes too long"},
		{name: "csi-volume-unknown", change: mounts(fromClaim("unknown")), step: `volume data: it cannot be mounted \(.+\), since`, object: "spec.volumes[0]"},
		{name: "volume-mode", change: mounts(fromClaim("raw")), step: `volume data: its volumeMode does not fit the container's volumeMounts or volumeDevices`,
			object: "spec.containers[*].volumeMounts, or volumeMode of the claim"},
		{name: "too-few-devices", change: devices("3"), step: `pod: was rejected: its devices could not be allocated \(.+\), since`, object: "spec.containers[*].resources.limits, or the device plugin on the node"},
		{name: "device-plugin-hangs", change: devices("1"), step: `pod: its devices and claims are being prepared, since`, object: "the device and DRA plugins on node NODE, if it takes too long"},
	}
}
