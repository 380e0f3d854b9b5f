package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swiftlet/apiserver/internal/manifests"
)

// TestManifests changes files of a directory and looks at what the API has, and at what the program reports.
// Steps run in this order.
func TestManifests(t *testing.T) {
	dir := t.TempDir()
	i := prepare(t)
	i.flags = []string{"--manifests=" + dir}
	reports := make(chan []manifests.Problem, 1000)
	i.readStdout = func(lines *bufio.Scanner) {
		for lines.Scan() {
			var report struct{ Problems []manifests.Problem }
			if err := json.Unmarshal(lines.Bytes(), &report); err != nil {
				t.Errorf("%q: %v", lines.Text(), err)
			}
			reports <- report.Problems
		}
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	settings := func(namespace, colour string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: " + namespace + "}\ndata: {colour: " + colour + "}\n"
	}
	const shelves = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: shelves.example.com}\nspec:\n  group: example.com\n  names: {kind: Shelf, plural: shelves}\n  scope: Namespaced\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
	write("a.yaml", settings("shop", "red")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
	i.launch()
	i.must("kubectl create -f - <<< '{apiVersion: v1, kind: Node, metadata: {name: lone}}'", "")
	for _, step := range []struct {
		name    string
		do      func()
		line    string // of shell
		want    string // in its output
		problem string // a part of a problem that is reported, as file:line: message
	}{
		{"namespace_comes_before_its_objects", func() {}, "kubectl get configmap settings -n shop -o jsonpath={.data.colour}", "red", ""},
		{"change", func() {
			write("a.yaml", settings("shop", "blue")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
		}, "kubectl get configmap settings -n shop -o jsonpath={.data.colour}", "blue", ""},
		{"fields_of_others_stay", func() {
			i.must("kubectl patch configmap settings -n shop --type=merge -p '{\"data\":{\"size\":\"big\"}}'", "")
			write("a.yaml", settings("shop", "green")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
		}, "kubectl get configmap settings -n shop -o jsonpath={.data}", `{"colour":"green","size":"big"}`, ""},
		{"unknown_field", func() {
			write("b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n  containers:\n  - name: c\n    imagee: x\n---\n"+strings.Replace(settings("shop", "red"), "settings", "other", 1))
		}, "kubectl get configmap other -n shop -o jsonpath={.data.colour}", "red", "b.yaml:7: .spec.containers[name=\"c\"].imagee: field not declared in schema"},
		{"invalid_value", func() {
			write("b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n  containers:\n  - name: c\n    image: x\n    imagePullPolicy: Often\n")
		}, "kubectl get configmap -n shop -o name", "configmap/settings", "b.yaml:8: Unsupported value"},
		{"wrong_type", func() {
			write("b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n  containers:\n  - name: c\n    image: x\n    command: [yes]\n")
		}, "kubectl get configmap -n shop -o name", "configmap/settings", "b.yaml:8: expected string"},
		{"pod", func() {
			write("b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}\n")
		}, "kubectl get pod web -o jsonpath={.spec.nodeName}", "lone", ""},
		{"pod_with_another_command_is_replaced", func() {
			write("b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x, command: [why]}]}\n")
		}, "kubectl get pod web -o jsonpath={.spec.containers[0].command[0]}", "why", ""},
		{"kind_is_not_served", func() { write("c.yaml", "\napiVersion: example.com/v1\nkind: Shelf\nmetadata: {name: top}\n") }, "kubectl get pod web -o name", "pod/web", "c.yaml:3: kind Shelf of example.com/v1 is not served"},
		{"kind_is_served_now", func() { write("d.yaml", shelves) }, "kubectl get shelf top -o name", "shelf.example.com/top", ""},
		{"object_of_two_files", func() { write("e.yaml", settings("shop", "white")) }, "kubectl get configmap settings -n shop -o jsonpath={.data.colour}", "green", "e.yaml:1: a.yaml:1 has this object, too"},
		{"broken_file_keeps_its_objects", func() { remove("e.yaml"); write("b.yaml", "x: [\n") }, "sleep 1; kubectl get pod web -o name", "pod/web", "b.yaml:1: "},
		{"removed_file", func() { remove("b.yaml") }, "kubectl get pod web 2>&1", "NotFound", ""},
		{"removed_while_down", func() { i.kill(); remove("c.yaml"); i.launch() }, "kubectl get shelves -A 2>&1; kubectl get configmap settings -n shop -o name", "No resources found\nconfigmap/settings", ""},
		{"removed_document", func() { write("a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n") }, "kubectl get configmap settings -n shop 2>&1", "NotFound", ""},
		{"renamed_file", func() {
			write("a.yaml", settings("shop", "red")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
			write("f.yaml", settings("default", "red"))
			if err := os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "z.yaml")); err != nil {
				t.Fatal(err)
			}
		}, `kubectl get configmap settings -n shop -o 'jsonpath={.metadata.annotations.swiftlet\.dev/manifest}'`, "z.yaml", ""},
		{"removed_but_created_by_someone_else", func() {
			i.must("kubectl wait --for=create configmap/settings --timeout=10s && kubectl delete configmap settings && kubectl create configmap settings", "")
			remove("f.yaml")
		}, "sleep 1; kubectl get configmap settings -o name", "configmap/settings", ""},
	} {
		t.Run(step.name, func(t *testing.T) {
			i.t = t
			step.do()
			out, deadline := "", time.Now().Add(20*time.Second)
			for {
				out, _ = i.run(step.line, "")
				if strings.Contains(out, step.want) {
					break
				}
				if time.Now().After(deadline) {
					log, _ := os.ReadFile(i.log.Name())
					t.Fatalf("%s: got %q, want %q\n%s", step.line, out, step.want, log)
				}
				time.Sleep(100 * time.Millisecond)
			}
			for step.problem != "" {
				var texts []string
				select {
				case problems := <-reports:
					for _, p := range problems {
						line, _ := json.Marshal(p.Line)
						texts = append(texts, strings.ReplaceAll(p.File+":"+string(line)+": "+p.Message, dir+"/", ""))
					}
				case <-time.After(time.Until(deadline)):
					t.Fatalf("no report of %q", step.problem)
				}
				file, message, _ := strings.Cut(step.problem, ": ")
				if slices.ContainsFunc(texts, func(text string) bool {
					return strings.HasPrefix(text, file+": ") && strings.Contains(text, message)
				}) {
					break
				}
				t.Logf("reported: %q", texts)
			}
		})
	}
}
