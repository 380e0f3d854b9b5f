package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// whyFault is a fault of a pod, and what the kubelet says about the pod.
type whyFault struct {
	name   string // also the pod's
	change func(*corev1.Pod)
	// created is called once the pod exists, and ready once it is ready; each may be nil. They run beside other
	// faults, and must not end the test.
	created, ready func(*corev1.Pod) error
	// deleted: the pod is deleted when it is ready, and the sentence is about its end.
	deleted bool
	// step matches the beginning of the sentence.
	step string
	// object is the end of the sentence: what to change. NAMESPACE, POD and NODE stand for their names.
	object string
}

// whyRow is a row of the table of faults.
type whyRow struct {
	name, sentence string
	step, object   bool // whether the sentence names the right ones
}

// whyPlace is a node where faults are injected. Rows are added by several goroutines.
type whyPlace struct {
	*testing.T
	node *bed.Box
	in   string

	mu   sync.Mutex
	rows []whyRow
}

// TestWhyOnRealRuntime: for each fault, the kubelet says which step blocks and what to change.
// SWIFTLET_WHY_FAULTS=all injects all of them and prints the table, by default a part in the steady node.
func TestWhyOnRealRuntime(t *testing.T) {
	t.Parallel()
	if kubelet == bed.Reference {
		t.Skip("the reference kubelet has no /why")
	}
	if os.Getenv("SWIFTLET_WHY_FAULTS") == "all" {
		testAllWhyFaults(t)
		return
	}
	w := &whyPlace{T: t, node: steadyNode(t), in: clearedNamespace(t)}
	w.inject(whyFaults(privateImage(t)))
	w.checkCommand()
	w.checkRows()
	w.releaseFinalizer()
}

// testAllWhyFaults injects all faults: those of pods in one node, side by side, and then those of a whole node.
func testAllWhyFaults(t *testing.T) {
	f := newWhyNode(t)
	w := &whyPlace{T: t, node: f.node, in: clearedNamespace(t)}
	image := privateImageFor(t, f.node)
	w.inject(slices.Concat(whyFaults(image), w.imageFaults(image), w.objectFaults(), w.volumeFaults(), w.driverFaults(),
		w.containerFaults(), w.probeFaults(), w.admissionFaults(), w.endFaults(), f.injectCalls(t, w.in)))
	w.checkCommand()
	w.releaseFinalizer()
	f.stopAPI(w)
	w.rows = append(w.rows, testWhyNodeFaults(t)...)
	w.checkRows()
}

// inject creates a pod for each fault, and waits for the sentences about them.
func (w *whyPlace) inject(faults []whyFault) {
	w.Helper()
	var all sync.WaitGroup
	for _, fault := range faults {
		p := sleeper(fault.name, w.node.Name())
		p.Spec.NodeSelector, p.Spec.NodeName = nil, w.node.Name() // the scheduler would keep some of them
		if fault.change != nil {
			fault.change(p)
		}
		made := create(w.T, w.in, p)
		all.Go(func() {
			if err := w.begin(fault, made); err != nil {
				w.Errorf("%s: %v", fault.name, err)
			}
			w.await(fault, "why", w.in, fault.name)
		})
	}
	all.Wait()
}

// begin does with the pod what the fault needs.
func (w *whyPlace) begin(fault whyFault, made *corev1.Pod) error {
	if fault.created != nil {
		if err := fault.created(made); err != nil {
			return err
		}
	}
	if fault.ready == nil && !fault.deleted {
		return nil
	}
	p, err := awaitErr(w.Context(), pods(w.in), fault.name, 2*timeout, ready)
	if err != nil {
		return err
	}
	if fault.ready != nil {
		if err := fault.ready(p); err != nil {
			return err
		}
	}
	if fault.deleted {
		return client().CoreV1().Pods(w.in).Delete(w.Context(), fault.name, metav1.DeleteOptions{})
	}
	return nil
}

// await waits until the sentence that the node serves at the path is that of the fault, and adds a row.
func (w *whyPlace) await(fault whyFault, path ...string) {
	w.Helper()
	object := strings.NewReplacer("NAMESPACE", w.in, "POD", fault.name, "NODE", w.node.Name()).Replace(fault.object)
	step := regexp.MustCompile("^(?:" + fault.step + ")")
	var row whyRow
	for deadline := time.Now().Add(3 * timeout); ; time.Sleep(500 * time.Millisecond) {
		row = whyRow{name: fault.name, sentence: w.sentence(path)}
		says, fix, _ := strings.Cut(row.sentence, "; fix ")
		row.step, row.object = step.MatchString(says), fix == object
		if row.step && row.object || time.Now().After(deadline) {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows = append(w.rows, row)
}

// sentence is the first line at a path of the node, as the API server's proxy of the node has it.
func (w *whyPlace) sentence(path []string) string {
	text, err := client().CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + w.node.Name() + "/proxy").Suffix(path...).DoRaw(w.Context())
	if err != nil {
		return err.Error()
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}

// checkRows prints the table, and fails the test for each sentence that names another step or object.
func (w *whyPlace) checkRows() {
	w.Helper()
	slices.SortFunc(w.rows, func(a, b whyRow) int { return strings.Compare(a.name, b.name) })
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "fault\tstep\tobject\tsentence")
	right := 0
	for _, row := range w.rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", row.name, rightOrWrong(row.step), rightOrWrong(row.object), row.sentence)
		if row.step && row.object {
			right++
		} else {
			w.Errorf("%s: wrong step or object:\n%s", row.name, row.sentence)
		}
	}
	_ = table.Flush() // writes to memory
	w.Logf("the sentences of %d of %d faults name the right step and object:\n%s", right, len(w.rows), text.String())
}

func rightOrWrong(is bool) string {
	if is {
		return "right"
	}
	return "wrong"
}

// checkCommand runs kubectl why, and asks the node itself.
func (w *whyPlace) checkCommand() {
	w.Helper()
	out, err := cluster.KubectlWhy(w.Context(), "-n", w.in, "no-secret")
	if err != nil || !strings.HasPrefix(out, "volume data: Secret "+w.in+"/none does not exist") || !strings.Contains(out, "─ volume data") {
		w.Errorf("kubectl why: %v\n%s", err, out)
	}
	out, err = cluster.KubectlWhy(w.Context(), "node", w.node.Name())
	if err != nil || !strings.HasPrefix(out, "node "+w.node.Name()+": is ready, but ") || !strings.Contains(out, w.in+"/no-secret: volume data: Secret") {
		w.Errorf("kubectl why node: %v\n%s", err, out)
	}
	if code, body := requestNode(w.T, w.node, http.MethodGet, "/why/"+w.in+"/no-secret?output=json"); code != http.StatusOK || !strings.Contains(body, `"class":"ObjectNotFound"`) {
		w.Errorf("%d: %s", code, body)
	}
	if _, err := cluster.KubectlWhy(w.Context(), "-n", w.in, "absent"); err == nil || !strings.Contains(err.Error(), "pod "+w.in+"/absent not found") {
		w.Errorf("kubectl why of a pod that does not exist: %v", err)
	}
}

// releaseFinalizer lets the pod with the finalizer go.
func (w *whyPlace) releaseFinalizer() {
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client().CoreV1().Pods(w.in).Patch(w.Context(), "finalizer", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		w.Error(err)
	}
}
