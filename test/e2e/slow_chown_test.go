package e2e

import (
	"encoding/binary"
	"os"
	"path"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestSlowChown: it takes long to change the files of a volume to the pod's fsGroup. An event says so,
// and the pod starts when it is done.
func TestSlowChown(t *testing.T) {
	t.Parallel()
	node, in := steadyNode(t), namespace(t)
	folder := path.Join("/var/lib", in)
	inNode(t, node, "mkdir "+folder)
	fuse := mountFUSE(t, node, folder)
	t.Cleanup(func() { inNode(t, node, "umount -l "+folder) })
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	go serveSlowChown(fuse, hold)

	createVolumeAndClaim(t, in, "data", localVolume(node, folder))
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	p := addVolume(sleeper("troubled", node.Name()), "data", source, "")
	p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](2000)}
	p = create(t, in, p)
	e := awaitReason(t, in, "troubled", "VolumePermissionChangeInProgress", 3*timeout)
	checkPodEvent(t, e, p, "Setting volume ownership for "+string(p.UID)+"/volumes/kubernetes.io~local-volume/"+in+
		" is taking longer than expected, consider using OnRootMismatch - "+
		"https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods")
	release()
	checkRecovers(t, in)
}

// Requests of the FUSE protocol.
const (
	fuseForget      = 2
	fuseGetAttr     = 3
	fuseSetAttr     = 4
	fuseStatFS      = 17
	fuseInit        = 26
	fuseOpenDir     = 27
	fuseReadDir     = 28
	fuseReleaseDir  = 29
	fuseInterrupt   = 36
	fuseBatchForget = 42
)

// serveSlowChown serves an empty directory until it is unmounted. Changes of its attributes are answered when
// hold is closed.
func serveSlowChown(fuse *os.File, hold <-chan struct{}) {
	fd := int(fuse.Fd()) // blocking from now on
	defer fuse.Close()
	request := make([]byte, 128<<10)
	for {
		n, err := unix.Read(fd, request)
		switch {
		case err == unix.EINTR || err == unix.ENOENT: // it was interrupted
			continue
		case err != nil || n < 40:
			return
		}
		opcode, id := binary.LittleEndian.Uint32(request[4:]), binary.LittleEndian.Uint64(request[8:])
		switch opcode {
		case fuseForget, fuseBatchForget, fuseInterrupt: // without an answer
		case fuseSetAttr:
			go func() {
				<-hold
				answerFUSE(fd, opcode, id)
			}()
		default:
			answerFUSE(fd, opcode, id)
		}
	}
}

// answerFUSE answers a request about the root directory.
func answerFUSE(fd int, opcode uint32, id uint64) {
	var body []byte
	order, errno := binary.LittleEndian, unix.Errno(0)
	switch opcode {
	case fuseInit: // version, and the size of writes
		body = make([]byte, 64)
		order.PutUint32(body, 7)
		order.PutUint32(body[4:], 31)
		order.PutUint32(body[20:], 4096)
	case fuseGetAttr, fuseSetAttr: // inode, mode and links
		body = make([]byte, 104)
		order.PutUint64(body[16:], 1)
		order.PutUint32(body[76:], unix.S_IFDIR|0o755)
		order.PutUint32(body[80:], 2)
	case fuseStatFS: // sizes of blocks and names
		body = make([]byte, 80)
		order.PutUint32(body[40:], 4096)
		order.PutUint32(body[44:], 255)
		order.PutUint32(body[48:], 4096)
	case fuseOpenDir:
		body = make([]byte, 16)
	case fuseReadDir, fuseReleaseDir:
	default:
		errno = unix.ENOSYS
	}
	answer := make([]byte, 16, 16+len(body))
	order.PutUint32(answer, uint32(16+len(body)))
	order.PutUint32(answer[4:], uint32(-int32(errno)))
	order.PutUint64(answer[8:], id)
	_, _ = unix.Write(fd, append(answer, body...)) // the requester may be gone
}
