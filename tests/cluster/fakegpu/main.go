// fakegpu is a device plugin (kubelet API v1beta1) that makes a worker of the test cluster look like one full of NVIDIA GPUs.
//
// It makes the device nodes, advertises nvidia.com/gpu, labels its Node as NVIDIA's feature discovery does, and takes a GPU
// for unhealthy while the file /run/fakegpu/unhealthy-INDEX exists. A container that gets k GPUs sees them as /dev/nvidia0
// to /dev/nvidia(k-1), as on a machine that has just those. When the kubelet restarts, the plugin registers again.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource      = "nvidia.com/gpu"
	socketName    = "fakegpu.sock"
	nvidiaMajor   = 195
	serviceTokens = "/var/run/secrets/kubernetes.io/serviceaccount"
	look          = 200 * time.Millisecond // how often faults and the kubelet's socket are looked at
)

var (
	count     = flag.Int("count", 8, "GPUs on this node")
	product   = flag.String("product", "NVIDIA-H100-80GB-HBM3", "label nvidia.com/gpu.product")
	hostDev   = flag.String("host-dev", "/host/dev", "the node's /dev")
	faultsDir = flag.String("faults", "/run/fakegpu", "folder of the files unhealthy-INDEX")
)

type plugin struct {
	v1beta1.UnimplementedDevicePluginServer
}

func deviceID(index int) string { return fmt.Sprintf("fakegpu-%d", index) }

// devices is the state of every GPU now.
func devices() []*v1beta1.Device {
	list := make([]*v1beta1.Device, *count)
	for i := range list {
		health := v1beta1.Healthy
		if _, err := os.Stat(filepath.Join(*faultsDir, fmt.Sprintf("unhealthy-%d", i))); err == nil {
			health = v1beta1.Unhealthy
		}
		list[i] = &v1beta1.Device{ID: deviceID(i), Health: health}
	}
	return list
}

func sameHealth(a, b *v1beta1.Device) bool { return a.Health == b.Health }

func (plugin) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return &v1beta1.DevicePluginOptions{}, nil
}

func (plugin) ListAndWatch(_ *v1beta1.Empty, stream grpc.ServerStreamingServer[v1beta1.ListAndWatchResponse]) error {
	var sent []*v1beta1.Device
	for ; stream.Context().Err() == nil; time.Sleep(look) {
		now := devices()
		if slices.EqualFunc(sent, now, sameHealth) {
			continue
		}
		if err := stream.Send(&v1beta1.ListAndWatchResponse{Devices: now}); err != nil {
			return err
		}
		sent = now
	}
	return stream.Context().Err()
}

func (plugin) Allocate(_ context.Context, request *v1beta1.AllocateRequest) (*v1beta1.AllocateResponse, error) {
	response := &v1beta1.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		answer := &v1beta1.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		}
		for i, id := range container.DevicesIds {
			answer.Devices = append(answer.Devices, &v1beta1.DeviceSpec{
				HostPath:      "/dev/nvidia" + strings.TrimPrefix(id, "fakegpu-"),
				ContainerPath: fmt.Sprintf("/dev/nvidia%d", i),
				Permissions:   "rw",
			})
		}
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

// makeNodes makes /dev/nvidia0... of the node. A character device of a driver that is not there can be looked at and chosen,
// which is all that Slurm does with it.
func makeNodes() error {
	for i := range *count {
		path := filepath.Join(*hostDev, fmt.Sprintf("nvidia%d", i))
		err := syscall.Mknod(path, syscall.S_IFCHR|0o666, nvidiaMajor<<8|i&0xff|(i&^0xff)<<12)
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("mknod %s: %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// apiClient is an HTTP client for the API server, with the service account's trust.
func apiClient() (*http.Client, string, error) {
	token, err := os.ReadFile(filepath.Join(serviceTokens, "token"))
	if err != nil {
		return nil, "", err
	}
	authority, err := os.ReadFile(filepath.Join(serviceTokens, "ca.crt"))
	if err != nil {
		return nil, "", err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	return &http.Client{Timeout: 5 * time.Second, Transport: transport}, string(token), nil
}

// label puts the product and the count on this plugin's Node.
func label(node string) error {
	client, token, err := apiClient()
	if err != nil {
		return err
	}
	address := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	patch := fmt.Sprintf(`{"metadata":{"labels":{"nvidia.com/gpu.product":%q,"nvidia.com/gpu.count":"%d"}}}`, *product, *count)
	request, err := http.NewRequest(http.MethodPatch, "https://"+address+"/api/v1/nodes/"+node, bytes.NewBufferString(patch))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("labelling %s: %s: %s", node, response.Status, text)
	}
	return nil
}

// labelUntilDone tries until the API server took the labels: at a node's first start the service network may lag.
func labelUntilDone(node string) {
	for ; ; time.Sleep(time.Second) {
		err := label(node)
		if err == nil {
			return
		}
		log.Print(err)
	}
}

func register() error {
	target := "unix://" + v1beta1.KubeletSocket
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = v1beta1.NewRegistrationClient(connection).Register(ctx, &v1beta1.RegisterRequest{
		Version: v1beta1.Version, Endpoint: socketName, ResourceName: resource,
	})
	return err
}

// serve offers the plugin until its socket goes away, which the kubelet does to every plugin when it starts.
func serve() error {
	path := filepath.Join(v1beta1.DevicePluginPath, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	v1beta1.RegisterDevicePluginServer(server, plugin{})
	go func() {
		if err := server.Serve(listener); err != nil {
			log.Print(err)
		}
	}()
	defer server.Stop()
	if err := register(); err != nil {
		return err
	}
	log.Printf("registered %d %s", *count, resource)
	for {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("the kubelet restarted: %w", err)
		}
		time.Sleep(look)
	}
}

func main() {
	flag.Parse()
	if err := makeNodes(); err != nil {
		log.Fatal(err)
	}
	if node := os.Getenv("NODE_NAME"); node != "" {
		go labelUntilDone(node)
	}
	for ; ; time.Sleep(look) {
		log.Print(serve())
	}
}
