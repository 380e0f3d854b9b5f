package simulate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"swiftlet/internal/pod"
	"swiftlet/test/fakeapi"
	"swiftlet/test/trust/tally"
)

// settleTime is longer than two of the longest back-offs, clearTime than a grace period and a few retries.
const (
	settleTime = 11 * time.Minute
	clearTime  = 5 * time.Minute
)

var (
	seeds     = flag.Int("seeds", 0, "number of seeds to run")
	firstSeed = flag.Uint64("first", 0, "first seed")
)

// The serving certificate of all nodes.
var certificateFile, keyFile string

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(800)
	klog.SetLogger(klog.Logger{})
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil // one of them sleeps until a time that is not the simulation's
	dir, err := os.MkdirTemp("", "simulate")
	if err == nil {
		err = writeCertificate(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(100, 0, 0)}
	certificate, err1 := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	private, err2 := x509.MarshalPKCS8PrivateKey(key)
	certificateFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	return errors.Join(err1, err2,
		os.WriteFile(certificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// TestSimulate runs many seeds.
func TestSimulate(t *testing.T) {
	if *seedFlag >= 0 {
		runSeed(t, uint64(*seedFlag), func(outcomeOf) {})
		return
	}
	count := *seeds
	switch {
	case count > 0:
	case testing.Short():
		count = 6 // with the race detector
	default:
		count = 300
	}
	result := tally.New(t, "simulate")
	start := time.Now()
	var simulated, faults, kills atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		slots := make(chan struct{}, 2)
		for i := range count {
			seed := *firstSeed + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				runSeed(t, seed, func(o outcomeOf) {
					simulated.Add(int64(o.simulated))
					faults.Add(int64(o.faults))
					kills.Add(int64(o.kills))
					o.count(result)
				})
			})
		}
	})
	took := time.Since(start)
	t.Logf("%d seeds in %v (%.1f/s), %v simulated (%.1f million seconds a minute), %d faults, of them %d kills of the agent",
		count, took.Round(time.Millisecond), float64(count)/took.Seconds(), time.Duration(simulated.Load()).Round(time.Second),
		time.Duration(simulated.Load()).Seconds()/1e6/took.Minutes(), faults.Load(), kills.Load())
}

// outcomeOf is what became of one seed.
type outcomeOf struct {
	simulated     time.Duration
	faults, kills int
	violations    []string
}

func (o outcomeOf) count(t *tally.Tally) {
	t.Add(o.faults, len(o.violations) == 0)
	for _, v := range o.violations {
		switch {
		case strings.HasPrefix(v, "lost:"):
			t.PodsLost(1)
		case strings.HasPrefix(v, "leak:"):
			t.Leaks(1)
		case strings.Contains(v, "is started"):
			t.Restarts(1)
		}
	}
}

// runSeed simulates one seed.
func runSeed(t *testing.T, seed uint64, record func(outcomeOf)) {
	base, err := os.MkdirTemp(memoryDir(), "simulate")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, seed, base)
		start := time.Now()
		w := newWorkload(n)
		n.start()
		w.run()
		n.endFaults()
		n.add("faults end")
		n.awaitAgent()
		time.Sleep(settleTime)
		synctest.Wait()
		w.checkSettled()
		w.clear()
		time.Sleep(clearTime)
		synctest.Wait()
		w.checkEmpty()
		n.stop()
		record(outcomeOf{time.Since(start), n.injected, n.kills, n.world.violations})
		report(t, n, seed)
	})
}

// memoryDir is a directory in memory, if there is one.
func memoryDir() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

var printTrace sync.Once

// report prints the trace of a failed run: all of it if one seed was asked for.
func report(t *testing.T, n *node, seed uint64) {
	if *seedFlag >= 0 {
		t.Logf("profile %+v\n%s", n.profile, n.last(1<<30))
	}
	for _, v := range n.world.violations {
		t.Errorf("seed %d: %s", seed, v)
	}
	if len(n.world.violations) > 0 && *seedFlag < 0 {
		printTrace.Do(func() { t.Logf("end of the trace of seed %d:\n%s", seed, n.last(40)) })
	}
}

// clear deletes all pods.
func (w *workload) clear() {
	w.add("all pods are deleted")
	for _, p := range fakeapi.List[v1.Pod](w.api) {
		if !pod.IsMirror(p) {
			w.deleteWith(p.Name, 5)
		}
	}
	_ = w.withDisk(func(live string) error {
		entries, err := os.ReadDir(filepath.Join(live, "manifests"))
		for _, e := range entries {
			err = errors.Join(err, os.Remove(filepath.Join(live, "manifests", e.Name())))
		}
		return err
	})
}
