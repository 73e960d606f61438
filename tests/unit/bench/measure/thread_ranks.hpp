// Ranks as threads of one process, so that collective decisions are tested with real waiting and
// without MPI.
#pragma once

#include <barrier>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/control_plane.hpp"

namespace fsdp::test {

/// What the ranks of one test share.
class ThreadRanks {
 public:
  explicit ThreadRanks(int ranks)
      : ranks_(ranks),
        arrivals_(ranks),
        texts_(static_cast<std::size_t>(ranks)),
        values_(static_cast<std::size_t>(ranks)) {}

  /// Runs `body` once a rank, at the same time, and returns when all are done.
  void run(const std::function<void(ControlPlane&)>& body) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks_; ++rank) {
      threads.emplace_back([this, rank, &body] {
        Plane plane(*this, rank);
        body(plane);
      });
    }
  }

 private:
  class Plane final : public ControlPlane {
   public:
    Plane(ThreadRanks& shared, int rank) : shared_(shared), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return shared_.ranks_; }
    void barrier(const std::string&) override { shared_.arrivals_.arrive_and_wait(); }
    std::string broadcast(const std::string& text, const std::string& stage) override {
      return all_gather(text, stage).front();
    }
    std::vector<std::string> all_gather(const std::string& text, const std::string&) override {
      shared_.texts_[static_cast<std::size_t>(rank_)] = text;
      shared_.arrivals_.arrive_and_wait();
      std::vector<std::string> all = shared_.texts_;
      shared_.arrivals_.arrive_and_wait();
      return all;
    }
    void max(std::span<double> values, const std::string&) override {
      reduce(values, [](double a, double b) { return a > b ? a : b; });
    }
    void min(std::span<double> values, const std::string&) override {
      reduce(values, [](double a, double b) { return a < b ? a : b; });
    }

   private:
    template <class Choose>
    void reduce(std::span<double> values, Choose choose) {
      shared_.values_[static_cast<std::size_t>(rank_)].assign(values.begin(), values.end());
      shared_.arrivals_.arrive_and_wait();
      for (const auto& other : shared_.values_) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = choose(values[i], other.at(i));
        }
      }
      shared_.arrivals_.arrive_and_wait();
    }

    ThreadRanks& shared_;
    int rank_;
  };

  int ranks_;
  std::barrier<> arrivals_;
  std::vector<std::string> texts_;
  std::vector<std::vector<double>> values_;
};

}  // namespace fsdp::test
