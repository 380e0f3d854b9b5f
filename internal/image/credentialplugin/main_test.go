package credentialplugin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// TestMain makes the test binary act as the plugin if the environment names a behavior.
func TestMain(m *testing.M) {
	if behavior := os.Getenv("PLUGIN"); behavior != "" {
		os.Exit(runAsPlugin(behavior))
	}
	os.Exit(m.Run())
}

func runAsPlugin(behavior string) int {
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	note(request)
	switch behavior {
	case "fail":
		fmt.Fprintln(os.Stderr, "no luck "+strings.Repeat("x", 10*maxStderr))
		return 3
	case "flood":
		_, _ = io.Copy(os.Stdout, endless{})
	case "hang", "leave a child":
		child := exec.Command(os.Args[0])
		child.Env, child.Stdout = []string{"PLUGIN=sleep"}, os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		note([]byte(fmt.Sprint(child.Process.Pid)))
		if behavior == "hang" {
			_ = child.Wait()
		}
	case "sleep":
		time.Sleep(time.Hour)
	}
	if behavior != "answer" && behavior != "leave a child" {
		fmt.Print(behavior)
		return 0
	}
	fmt.Print(responseTo(request))
	return 0
}

// responseTo returns a response whose user name has the arguments and the image's name, and whose
// password has the token.
func responseTo(request []byte) string {
	var parsed api.CredentialProviderRequest
	if err := json.Unmarshal(request, &parsed); err != nil {
		panic(err)
	}
	duration := ""
	if d := os.Getenv("DURATION"); d != "" {
		duration = `"cacheDuration":"` + d + `",`
	}
	return fmt.Sprintf(`{"kind":"CredentialProviderResponse","apiVersion":%q,"cacheKeyType":%q,%s"auth":{%q:{"username":%q,"password":%q}}}`,
		parsed.APIVersion, os.Getenv("KIND"), duration, "*.example.com", strings.Join(os.Args[1:], " ")+parsed.Image, os.Getenv("PASSWORD")+parsed.ServiceAccountToken)
}

// note appends a line to the file that the test reads.
func note(line []byte) {
	file, err := os.OpenFile(os.Getenv("NOTES"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return // the test reads no notes
	}
	defer file.Close()
	fmt.Fprintf(file, "%s\n", bytes.TrimSpace(line))
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
