package conformance

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

const ginkgoJSON = `[{"SpecReports": [
  {"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed", "NumAttempts": 1},
  {"ContainerHierarchyTexts": ["[sig-node] Pods", "on a node"], "LeafNodeType": "It", "LeafNodeText": "should run",
   "State": "passed", "NumAttempts": 1, "RunTime": 1500000000, "CapturedGinkgoWriterOutput": "all is well"},
  {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "should stop",
   "State": "timedout", "NumAttempts": 1, "RunTime": 1000000000, "Failure": {"Message": "too slow"}, "CapturedGinkgoWriterOutput": "waiting"},
  {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "need a cloud",
   "State": "skipped", "NumAttempts": 1, "Failure": {"Message": "no cloud"}},
  {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "should have gone on",
   "State": "interrupted", "NumAttempts": 1, "Failure": {"Message": "Interrupted by Timeout"}},
  {"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "should have had more time",
   "State": "timedout", "NumAttempts": 1, "Failure": {"Message": "A suite timeout occurred"}},
  {"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeType": "It", "LeafNodeText": "was not chosen",
   "State": "skipped", "NumAttempts": 0}
]}]`

func TestReadReportSkipsTestsNotRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(path, []byte(ginkgoJSON), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadReport(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Outcome{
		{Test: "[sig-node] Pods on a node should run", State: passed, Seconds: 1.5},
		{Test: "[sig-node] Pods should stop", State: failed, Seconds: 1, Message: "too slow", Output: "waiting"},
		{Test: "[sig-node] Pods need a cloud", State: skipped, Message: "no cloud"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("ReadReport = %+v\nwant %+v", got, want)
	}
}

func TestReadTestsListsAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	const text = `[{"SpecReports": [
	  {"LeafNodeType": "ReportBeforeSuite", "State": "passed"},
	  {"ContainerHierarchyTexts": ["Pods"], "LeafNodeType": "It", "LeafNodeText": "should run", "State": "passed",
	   "LeafNodeLocation": {"FileName": "/somewhere/kubernetes/test/e2e/node/pods.go"}},
	  {"ContainerHierarchyTexts": ["Jobs"], "LeafNodeType": "It", "LeafNodeText": "should run", "State": "skipped",
	   "LeafNodeLocation": {"FileName": "k8s.io/kubernetes/test/e2e/apps/job.go"}}]}]`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []Test{{"test/e2e/node/pods.go", "Pods should run"}, {"test/e2e/apps/job.go", "Jobs should run"}}
	if got, err := readTests(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("readTests = %q, %v; want %q", got, err, want)
	}
}

func TestReadReportHasFailedBeforeSuite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	const text = `[{"SpecReports": [{"LeafNodeType": "SynchronizedBeforeSuite", "State": "failed", "NumAttempts": 1}]}]`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadReport(path)
	if err != nil || len(got) != 1 || got[0].State != failed {
		t.Errorf("ReadReport = %+v, %v; want one failure", got, err)
	}
}
