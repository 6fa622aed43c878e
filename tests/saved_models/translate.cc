// Lines in, translations out, by a SavedModel in TensorFlow's C library: what TF Serving does with it, and no Python.
//
//     translate SAVED_MODEL LIBRARY_OF_OPS < lines > translations
//
// Loads the folder with the tag "serve", asks `serving_default` for all lines in one batch, and tells on standard error how long loading and
// translating took.
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace {

void Require(const TF_Status* status, const std::string& what) {
  if (TF_GetCode(status) == TF_OK) return;
  std::cerr << what << ": " << TF_Message(status) << "\n";
  std::exit(1);
}

TF_Output Find(TF_Graph* graph, const std::string& tensor) {
  const auto colon = tensor.find(':');
  return {TF_GraphOperationByName(graph, tensor.substr(0, colon).c_str()), std::stoi(tensor.substr(colon + 1))};
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: translate SAVED_MODEL LIBRARY_OF_OPS < lines\n";
    return 2;
  }
  TF_Status* status = TF_NewStatus();
  const auto began = std::chrono::steady_clock::now();
  TF_LoadLibrary(argv[2], status);
  Require(status, "the ops");

  const char* tags[] = {"serve"};
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* described = TF_NewBuffer();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_LoadSessionFromSavedModel(options, nullptr, argv[1], tags, 1, graph, described, status);
  Require(status, "loading");
  tensorflow::MetaGraphDef meta_graph;
  meta_graph.ParseFromArray(described->data, static_cast<int>(described->length));
  const auto& signature = meta_graph.signature_def().at("serving_default");
  const TF_Output text = Find(graph, signature.inputs().at("text").name());
  const TF_Output translation = Find(graph, signature.outputs().at("translation").name());
  std::cerr << "loaded in " << Seconds(began) << " s\n";

  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  const int64_t count = static_cast<int64_t>(lines.size());
  TF_Tensor* input = TF_AllocateTensor(TF_STRING, &count, 1, lines.size() * sizeof(TF_TString));
  auto* strings = static_cast<TF_TString*>(TF_TensorData(input));
  for (size_t i = 0; i < lines.size(); ++i) {
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], lines[i].data(), lines[i].size());
  }
  for (int round = 0; round < 2; ++round) {
    const auto asked = std::chrono::steady_clock::now();
    TF_Tensor* output = nullptr;
    TF_SessionRun(session, nullptr, &text, &input, 1, &translation, &output, 1, nullptr, 0, nullptr, status);
    Require(status, "translating");
    std::cerr << (round ? "translated again in " : "translated in ") << Seconds(asked) << " s\n";
    if (round == 0) {
      const auto* found = static_cast<const TF_TString*>(TF_TensorData(output));
      for (int64_t i = 0; i < TF_Dim(output, 0); ++i) {
        std::cout.write(TF_StringGetDataPointer(&found[i]), static_cast<std::streamsize>(TF_StringGetSize(&found[i]))) << "\n";
      }
    }
    TF_DeleteTensor(output);
  }
  return 0;
}
