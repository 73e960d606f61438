#include "bench/backend/mpi/launch.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/units/error.hpp"

namespace fsdp::mpi {
namespace {

class Launch : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name :
         {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
      unsetenv(name);
    }
  }
};

TEST_F(Launch, NobodySpeaks) {
  EXPECT_FALSE(tasks_started());
  EXPECT_NO_THROW(refuse_lonely_tasks(1));
}

TEST_F(Launch, TheNearestLauncherSpeaksFirst) {
  setenv("SLURM_NTASKS", "8", 1);
  ASSERT_TRUE(tasks_started());
  EXPECT_EQ(tasks_started()->tasks, 8);
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  EXPECT_EQ(tasks_started()->tasks, 4);
  setenv("PMI_SIZE", "1", 1);
  EXPECT_EQ(tasks_started()->tasks, 1) << "mpiexec -n 1 inside an allocation of 8 is no mistake";
  EXPECT_NO_THROW(refuse_lonely_tasks(1));
}

TEST_F(Launch, LonelyTasksAreToldWhatToDo) {
  setenv("SLURM_NTASKS", "8", 1);
  EXPECT_NO_THROW(refuse_lonely_tasks(8));
  try {
    refuse_lonely_tasks(1);
    FAIL() << "8 tasks that all believe to be alone";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("srun --mpi=pmi2"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("SLURM_NTASKS"), std::string::npos);
  }
}

TEST_F(Launch, NumbersThatAreNoneAreNotBelieved) {
  setenv("PMI_SIZE", "many", 1);
  setenv("SLURM_NTASKS", "3", 1);
  ASSERT_TRUE(tasks_started());
  EXPECT_EQ(tasks_started()->tasks, 3);
}

}  // namespace
}  // namespace fsdp::mpi
