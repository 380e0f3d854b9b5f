package server

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// gcPercent trades a little CPU under load for memory: an idle server allocates hardly anything.
const gcPercent = 50

// limitGarbage sets the size of the heap in relation to what is in use, unless GOGC does.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// whenReady calls do when the server is ready.
func whenReady(ctx context.Context, config *rest.Config, do func()) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		klog.ErrorS(err, "failed to wait until the server is ready")
		return
	}
	ready := func(ctx context.Context) (bool, error) {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	}
	if wait.PollUntilContextCancel(ctx, time.Second, false, ready) == nil {
		do()
	}
}

// releaseMemory gives back memory that is not in use, and that comes back when it is needed.
func releaseMemory() {
	debug.FreeOSMemory()
	if err := releaseProgram(); err != nil {
		klog.ErrorS(err, "failed to release program pages")
	}
}

// releaseProgram drops the pages of the executable from this process. Nearly all of them are touched at the
// start, when every API type is registered, and few are used afterwards. Those are mapped again from the page
// cache.
func releaseProgram() error {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find executable: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("find mappings: %w", err)
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		var mode string
		line := lines.Text()
		if !strings.HasSuffix(line, " "+path) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || strings.Contains(mode, "w") {
			continue // written pages are the program's data
		}
		if err := madvise(from, to-from, unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("release %s: %w", line, err)
		}
	}
	return nil
}

func madvise(address, length uintptr, advice int) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, address, length, uintptr(advice)); errno != 0 {
		return errno
	}
	return nil
}
