package path

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/pod"
	"swiftlet/test/fakecri"
)

var update = flag.Bool("update", false, "write the actual output to the scripts")

// TestScripts runs testdata/*.txtar. A script is the part before the files: one command per line,
// followed by its expected output in lines that begin with ">". Lines that begin with "#" are
// comments. After each command the script waits until everything without a delay has happened.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			onTestNode(t, func(w *testNode) { runScript(w, file, archive) })
		})
	}
}

func runScript(w *testNode, file string, archive *txtar.Archive) {
	s := &script{testNode: w, files: map[string][]byte{}, ids: map[string]string{}}
	for _, f := range archive.Files {
		s.files[f.Name] = f.Data
	}
	var transcript []string
	lines := strings.Split(strings.TrimRight(string(archive.Comment), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		transcript = append(transcript, lines[i])
		words := strings.Fields(lines[i])
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		shown, err := s.run(words)
		if err != nil {
			w.t.Fatalf("%s:%d: %s: %v", file, i+1, lines[i], err)
		}
		at := i + 1
		var want []string
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], ">") {
			i++
			want = append(want, strings.TrimPrefix(strings.TrimPrefix(lines[i], ">"), " "))
		}
		for _, line := range shown {
			transcript = append(transcript, "> "+line)
		}
		if !*update && strings.Join(shown, "\n") != strings.Join(want, "\n") {
			w.t.Fatalf("%s:%d: %s\ngot:\n%s\nwant:\n%s", file, at, words, strings.Join(shown, "\n"), strings.Join(want, "\n"))
		}
	}
	if *update {
		archive.Comment = []byte(strings.Join(transcript, "\n") + "\n")
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

type script struct {
	*testNode
	files map[string][]byte
	ids   map[string]string // IDs of containers that existed when a fault was injected for them
}

// commands are the commands of scripts.
var commands = map[string]func(s *script, args []string) ([]string, error){
	// Changes of pods.
	"apply":  func(s *script, a []string) ([]string, error) { return nil, s.store.apply(s.files[a[0]]) },
	"static": (*script).static, // FILE…: replaces the static manifests
	"delete": (*script).delete, // POD [GRACE]
	"evict":  (*script).evict,  // POD REASON [GRACE]
	"reject": func(s *script, a []string) ([]string, error) {
		return nil, s.setBehaviour(func() { s.testNode.rejects[a[0]] = a[1] })
	}, // POD REASON: admission rejects it from now on
	"forget": func(s *script, a []string) ([]string, error) {
		return nil, s.store.DeletePod(s.t.Context(), "", a[0], "")
	}, // POD: deletes it from the API server at once

	// Behaviour of containers, runtime and agent.
	"pass":  (*script).passTime, // DURATION
	"exit":  (*script).exit,     // CONTAINER CODE: it exits
	"exits": (*script).exits,    // CONTAINER CODE: it exits whenever it starts
	"stays": func(s *script, a []string) ([]string, error) {
		return nil, s.setBehaviour(func() { delete(s.testNode.exits, a[0]) })
	},
	"sick": func(s *script, a []string) ([]string, error) {
		return nil, s.setBehaviour(func() { s.testNode.unhealthy[a[0]] = true })
	},
	"well": func(s *script, a []string) ([]string, error) {
		return nil, s.setBehaviour(func() { delete(s.testNode.unhealthy, a[0]) })
	},
	"stubborn": func(s *script, a []string) ([]string, error) {
		return nil, s.setBehaviour(func() { s.testNode.slowToStop[a[0]] = true })
	},
	"class": func(s *script, a []string) ([]string, error) {
		return nil, s.setBehaviour(func() { s.testNode.classes[a[0]] = true })
	}, // NAME: the runtime class exists
	"unclass": func(s *script, a []string) ([]string, error) {
		return nil, s.setBehaviour(func() { delete(s.testNode.classes, a[0]) })
	},
	"publish": func(s *script, a []string) ([]string, error) { s.runtime.Publish(a[0], 1); return nil, nil },
	"lose":    (*script).lose,          // POD: its sandbox is killed
	"events":  (*script).controlEvents, // hold|release|repeat|break|drop: the runtime's events
	"fault":   (*script).fault,         // METHOD [for=NAME] hang|delay=D|TEXT [times=N]
	"heal":    func(s *script, a []string) ([]string, error) { s.runtime.ClearFault(a[0]); return nil, nil },
	"restart": func(s *script, a []string) ([]string, error) { s.stop(); s.start(); return nil, nil },
	"dies":    func(s *script, a []string) ([]string, error) { s.stop(); return nil, nil }, // the agent, until lives
	"lives":   func(s *script, a []string) ([]string, error) { s.start(); return nil, nil },
	"away":    func(s *script, a []string) ([]string, error) { s.runtime.Stop(); return nil, nil }, // the runtime
	"back":    func(s *script, a []string) ([]string, error) { return nil, s.runtime.Restart() },
	"stray":   (*script).runUnknownPod, // POD CONTAINER: a running pod that is in no source

	// Output.
	"status":  func(s *script, a []string) ([]string, error) { return s.showStatus(a...), nil },
	"runtime": func(s *script, a []string) ([]string, error) { return s.showRuntime(), nil },
	"actions": func(s *script, a []string) ([]string, error) { return s.showActions(), nil },
	"calls":   func(s *script, a []string) ([]string, error) { return s.showCalls(), nil },
	"told":    func(s *script, a []string) ([]string, error) { return s.testNode.events.take(a...), nil }, // [REASON…]
	"left":    func(s *script, a []string) ([]string, error) { return s.showLeftovers(), nil },
}

// minArgs is the minimum number of arguments of a command.
var minArgs = map[string]int{
	"apply": 1, "delete": 1, "evict": 2, "reject": 2, "forget": 1, "pass": 1, "exit": 2, "exits": 2, "stays": 1, "sick": 1, "well": 1, "class": 1, "unclass": 1,
	"stubborn": 1, "publish": 1, "lose": 1, "events": 1, "fault": 2, "heal": 1, "stray": 2,
}

func (s *script) run(words []string) ([]string, error) {
	do, ok := commands[words[0]]
	if !ok || len(words)-1 < minArgs[words[0]] {
		return nil, errors.New("unknown command or missing arguments")
	}
	shown, err := do(s, words[1:])
	s.settle()
	return shown, err
}

// setBehaviour changes the node's behaviour under its lock.
func (s *script) setBehaviour(change func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	return nil
}

func (s *script) static(names []string) ([]string, error) {
	var texts [][]byte
	for _, name := range names {
		texts = append(texts, s.files[name])
	}
	return nil, s.store.setStatic(texts...)
}

func (s *script) delete(args []string) ([]string, error) {
	grace := int64(-1)
	if len(args) > 1 {
		var err error
		if grace, err = strconv.ParseInt(args[1], 10, 64); err != nil {
			return nil, err
		}
	}
	return nil, s.store.delete(args[0], grace)
}

func (s *script) evict(args []string) ([]string, error) {
	uid := types.UID(args[0] + "-uid")
	var grace *int64
	if len(args) > 2 {
		seconds, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return nil, err
		}
		grace = &seconds
	}
	if !s.agent.workers.Evict(uid, pod.Failure{Reason: args[1], Message: "no room"}, grace) {
		return nil, errors.New("no such pod")
	}
	return nil, nil
}

func (s *script) passTime(args []string) ([]string, error) {
	d, err := time.ParseDuration(args[0])
	s.pass(d)
	return nil, err
}

func (s *script) exit(args []string) ([]string, error) {
	code, err := strconv.Atoi(args[1])
	c := s.container(args[0])
	if c == nil {
		return nil, errors.New("no such container")
	}
	s.runtime.Exit(c.Id, int32(code))
	return nil, err
}

func (s *script) exits(args []string) ([]string, error) {
	code, err := strconv.Atoi(args[1])
	return nil, errors.Join(err, s.setBehaviour(func() { s.testNode.exits[args[0]] = int32(code) }))
}

func (s *script) lose(args []string) ([]string, error) {
	for _, b := range s.runtime.Sandboxes() {
		if b.Metadata.Name == args[0] && b.State == runtimeapi.PodSandboxState_SANDBOX_READY {
			s.runtime.KillSandbox(b.Id)
			return nil, nil
		}
	}
	return nil, errors.New("no such sandbox")
}

func (s *script) controlEvents(args []string) ([]string, error) {
	controlEvents := s.runtime.Events
	switch args[0] {
	case "hold":
		controlEvents.Hold()
	case "release":
		controlEvents.Release()
	case "repeat":
		controlEvents.Repeat()
	case "break":
		controlEvents.Break()
	case "drop":
		controlEvents.Drop(1000)
	default:
		return nil, errors.New("unknown argument")
	}
	return nil, nil
}

func (s *script) runUnknownPod(args []string) ([]string, error) {
	s.runtime.RunPod("default", args[0], args[0]+"-uid", args[1])
	return nil, nil
}

// fault reads "METHOD [for=NAME] what… [times=N]"; NAME is a pod, a container or an image.
func (s *script) fault(args []string) ([]string, error) {
	fault := fakecri.Fault{}
	method, rest := args[0], args[1:]
	if last := rest[len(rest)-1]; strings.HasPrefix(last, "times=") {
		if _, err := fmt.Sscanf(last, "times=%d", &fault.Times); err != nil {
			return nil, err
		}
		rest = rest[:len(rest)-1]
	}
	if name, limited := strings.CutPrefix(rest[0], "for="); limited {
		if c := s.container(name); c != nil { // Match must not call the runtime
			s.ids[name] = c.Id
		}
		fault.Match = func(request any) bool { return s.concerns(request, name) }
		rest = rest[1:]
	}
	what := strings.Join(rest, " ")
	delay, isDelay := strings.CutPrefix(what, "delay=")
	switch {
	case what == "hang":
		fault.Hang = true
	case isDelay:
		d, err := time.ParseDuration(delay)
		if err != nil {
			return nil, err
		}
		fault.Delay = d
	default:
		fault.Err = status.Error(codes.Unknown, what)
	}
	s.runtime.Inject(method, fault)
	return nil, nil
}

// concerns reports whether a request is for the pod, container or image.
func (s *script) concerns(request any, name string) bool {
	switch r := request.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		return r.Config.Metadata.Name == name
	case *runtimeapi.CreateContainerRequest:
		return r.Config.Metadata.Name == name
	case *runtimeapi.PullImageRequest:
		return r.Image.Image == name
	case *runtimeapi.ContainerStatusRequest:
		return r.ContainerId == s.ids[name]
	}
	return false
}
